/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* What packet_sampler.bpf.c outputs and sample_reader.cc reads: this struct, then the packet's
 * first bytes. */
#ifndef PACKET_SAMPLER_H
#define PACKET_SAMPLER_H

#include <linux/types.h>

struct sample {
  __u32 packet_bytes;
  __u32 captured_bytes; /* so many follow; then the kernel's padding, up to 7 bytes */
};

enum { CAPTURE_BYTES = 128 }; /* of each packet at most */

#endif
