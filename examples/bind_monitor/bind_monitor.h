/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* What bind_monitor.bpf.c gets from the kernel, and what it outputs for bind_reader.cc. */
#ifndef BIND_MONITOR_H
#define BIND_MONITOR_H

#include <linux/types.h>

/* The context of a program at any of syscalls:sys_enter_...; its offsets are those of the format
 * files in tracefs. */
struct sys_enter {
  __u64 common;
  __s32 number;
  __u64 args[6];
};

enum { NAME_BYTES = 16, ADDRESS_BYTES = 128 }; /* the kernel's: TASK_COMM_LEN, sockaddr_storage */

/* One call of bind(), as asked: whether it succeeds is not known yet. */
struct bind_asked {
  __u32 pid;
  __u32 address_bytes; /* 0: longer than any address, or not readable */
  char name[NAME_BYTES];
  __u8 address[ADDRESS_BYTES]; /* a struct sockaddr, zero behind address_bytes */
};

#endif
