/* What a natively compiled BPF object consists of: maps, programs and global variables. Written by
 * native_table (from the BPF object, so that all numbers are libbpf's), compiled together with the
 * source, read by runtime/object.h. C, since the source is. */
#ifndef DWELL_RUNTIME_NATIVE_OBJECT_H
#define DWELL_RUNTIME_NATIVE_OBJECT_H

struct dwell_native_map {
  const char* name;
  void* variable; /* the runtime writes which map it is into its first word */
  unsigned int type;
  unsigned int key_bytes;
  unsigned int value_bytes;
  unsigned int max_entries;
  unsigned int flags;
  const struct dwell_native_map* inner; /* of a map of maps: what its maps are like */
};

struct dwell_native_program {
  const char* name;
  const char* section; /* says what it is attached to, so how it may nest */
  int (*run)(void* context);
};

struct dwell_native_variable {
  const char* name;
  void* address;
  unsigned long bytes;
  int read_only; /* a constant to the program, set before it is loaded */
};

struct dwell_native_object {
  const char* name;
  const struct dwell_native_map* maps;
  unsigned int map_count;
  const struct dwell_native_program* programs;
  unsigned int program_count;
  const struct dwell_native_variable* variables;
  unsigned int variable_count;
};

#endif
