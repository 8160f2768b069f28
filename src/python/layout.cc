#include "python/layout.h"

#include <fmt/format.h>

#include <cstring>

namespace dwell::python {
namespace {

constexpr uint32_t kMinor = 0x10000;  // PY_VERSION_HEX: 0x030b02f0 is 3.11.2
constexpr uint32_t kVersion311 = 0x030b, kVersion312 = 0x030c, kVersion313 = 0x030d,
                   kVersion314 = 0x030e;
// enum _frameowner: from here on a frame is none of the program but the entry of an eval call.
// FRAME_OWNED_BY_CSTACK of 3.12 and 3.13, FRAME_OWNED_BY_INTERPRETER of 3.14.
constexpr uint8_t kOwnedByCStack = 3;

// CPython 3.11: Include/cpython/{pystate,code,object,unicodeobject,bytesobject}.h and
// Include/internal/pycore_{runtime,interp,frame}.h.
constexpr Layout k311 = {
    .frames = {.runtime_interpreters = 40,  // _PyRuntimeState.interpreters.head
               .interpreter_next = 0,
               .interpreter_threads = 16,  // PyInterpreterState.threads.head
               .thread_next = 8,
               .thread_native_id = 160,
               .thread_frame = 56,   // PyThreadState.cframe
               .indirect_frame = 8,  // _PyCFrame.current_frame
               .code_instructions = 184,
               .frame_bytes = 72,
               .frame_code = 32,
               .frame_previous = 48,
               .frame_instruction = 56,  // prev_instr
               .frame_entry = 68,        // is_entry
               .entry_min = 1,
               .entry_is_shim = 0,
               .zero = 0},
    .objects = {.type = 8,
                .type_name = 24,
                .code_filename = 112,
                .code_name = 128,
                .code_line_table = 136,
                .code_first_line = 72,
                .bytes_length = 16,
                .bytes_data = 32,
                .string_length = 16,
                .string_state = 32,
                .string_ascii_data = 48,    // sizeof(PyASCIIObject)
                .string_other_data = 72}};  // sizeof(PyCompactUnicodeObject)

// CPython 3.12: the same headers.
constexpr Layout k312 = {.frames = {.runtime_interpreters = 40,
                                    .interpreter_next = 0,
                                    .interpreter_threads = 72,
                                    .thread_next = 8,
                                    .thread_native_id = 144,
                                    .thread_frame = 56,
                                    .indirect_frame = 0,
                                    .code_instructions = 192,
                                    .frame_bytes = 72,
                                    .frame_code = 0,
                                    .frame_previous = 8,
                                    .frame_instruction = 56,
                                    .frame_entry = 70,  // owner
                                    .entry_min = kOwnedByCStack,
                                    .entry_is_shim = 1,
                                    .zero = 0},
                         .objects = {.type = 8,
                                     .type_name = 24,
                                     .code_filename = 112,
                                     .code_name = 128,
                                     .code_line_table = 136,
                                     .code_first_line = 68,
                                     .bytes_length = 16,
                                     .bytes_data = 32,
                                     .string_length = 16,
                                     .string_state = 32,
                                     .string_ascii_data = 40,
                                     .string_other_data = 56}};

// The words of _Py_DebugOffsets that we want, counted from its beginning: every member is one word,
// the cookie included. Include/internal/pycore_runtime.h of 3.13, pycore_debug_offsets.h of 3.14.
struct DebugWords {
  uint8_t interpreters, interpreter_next, threads, thread_next, current_frame, native_thread_id;
  uint8_t frame_size, frame_previous, frame_executable, frame_instruction, frame_owner;
  uint8_t code_filename, code_qualname, code_line_table, code_first_line, code_instructions;
  uint8_t object_type, type_name, bytes_length, bytes_data;
  uint8_t string_state, string_length, ascii_size;
};
constexpr size_t kVersionWord = 1, kFreeThreadedWord = 2;
constexpr DebugWords k313 = {.interpreters = 5,
                             .interpreter_next = 8,
                             .threads = 9,
                             .thread_next = 21,
                             .current_frame = 23,
                             .native_thread_id = 25,
                             .frame_size = 28,
                             .frame_previous = 29,
                             .frame_executable = 30,
                             .frame_instruction = 31,
                             .frame_owner = 33,
                             .code_filename = 35,
                             .code_qualname = 37,
                             .code_line_table = 38,
                             .code_first_line = 39,
                             .code_instructions = 43,
                             .object_type = 45,
                             .type_name = 47,
                             .bytes_length = 65,
                             .bytes_data = 66,
                             .string_state = 68,
                             .string_length = 69,
                             .ascii_size = 70};
constexpr DebugWords k314 = {.interpreters = 5,
                             .interpreter_next = 8,
                             .threads = 9,
                             .thread_next = 22,
                             .current_frame = 24,
                             .native_thread_id = 26,
                             .frame_size = 29,
                             .frame_previous = 30,
                             .frame_executable = 31,
                             .frame_instruction = 32,
                             .frame_owner = 34,
                             .code_filename = 37,
                             .code_qualname = 39,
                             .code_line_table = 40,
                             .code_first_line = 41,
                             .code_instructions = 45,
                             .object_type = 47,
                             .type_name = 49,
                             .bytes_length = 71,
                             .bytes_data = 72,
                             .string_state = 74,
                             .string_length = 75,
                             .ascii_size = 76};
// sizeof(PyCompactUnicodeObject) - sizeof(PyASCIIObject) since 3.12: its UTF-8 form and the length.
constexpr uint32_t kCompactMore = 16;

// Reads words of the struct; the first that is out of bounds fails all.
class DebugOffsets {
 public:
  explicit DebugOffsets(std::string_view bytes) : bytes_(bytes) {}

  uint64_t word(size_t index) {
    uint64_t value = 0;
    if ((index + 1) * sizeof(value) > bytes_.size())
      failed_ = true;
    else
      std::memcpy(&value, bytes_.data() + index * sizeof(value), sizeof(value));
    return value;
  }
  uint32_t offset(size_t index, uint64_t bound) {
    const uint64_t value = word(index);
    failed_ = failed_ || value >= bound;
    return failed_ ? 0 : static_cast<uint32_t>(value);
  }
  // Of a word or a byte in a frame.
  uint8_t in_frame(size_t index, uint32_t frame_bytes, uint32_t bytes) {
    const uint32_t value = offset(index, kOffsetMax);
    failed_ = failed_ || value % bytes != 0 || value + bytes > frame_bytes;
    return failed_ ? uint8_t{0} : static_cast<uint8_t>(value);
  }
  bool failed() const { return failed_; }

 private:
  std::string_view bytes_;
  bool failed_ = false;
};

dwell_python_layout frame_layout(DebugOffsets& told, const DebugWords& at) {
  dwell_python_layout layout = {};
  layout.runtime_interpreters = told.offset(at.interpreters, kOffsetMax);
  layout.interpreter_next = told.offset(at.interpreter_next, kOffsetMax);
  layout.interpreter_threads = told.offset(at.threads, kOffsetMax);
  layout.thread_next = told.offset(at.thread_next, kOffsetMax);
  layout.thread_native_id = told.offset(at.native_thread_id, kOffsetMax);
  layout.thread_frame = told.offset(at.current_frame, kOffsetMax);
  layout.indirect_frame = DWELL_PYTHON_DIRECT;
  layout.code_instructions = told.offset(at.code_instructions, kCodeBytesMax);
  // sizeof(_PyInterpreterFrame) counts one local variable, which a frame need not have.
  const uint32_t bytes = told.offset(at.frame_size, DWELL_PYTHON_FRAME_BYTES + 9) & ~7u;
  layout.frame_bytes = static_cast<uint8_t>(bytes >= 8 ? bytes - 8 : 0);
  layout.frame_code = told.in_frame(at.frame_executable, layout.frame_bytes, 8);
  layout.frame_previous = told.in_frame(at.frame_previous, layout.frame_bytes, 8);
  layout.frame_instruction = told.in_frame(at.frame_instruction, layout.frame_bytes, 8);
  layout.frame_entry = told.in_frame(at.frame_owner, layout.frame_bytes, 1);
  layout.entry_min = kOwnedByCStack;
  layout.entry_is_shim = 1;
  return layout;
}

ObjectOffsets object_offsets(DebugOffsets& told, const DebugWords& at) {
  ObjectOffsets offsets;
  offsets.type = told.offset(at.object_type, kCodeBytesMax - 8);
  offsets.type_name = told.offset(at.type_name, kOffsetMax);
  offsets.code_filename = told.offset(at.code_filename, kCodeBytesMax - 8);
  offsets.code_name = told.offset(at.code_qualname, kCodeBytesMax - 8);
  offsets.code_line_table = told.offset(at.code_line_table, kCodeBytesMax - 8);
  offsets.code_first_line = told.offset(at.code_first_line, kCodeBytesMax - 8);
  offsets.bytes_length = told.offset(at.bytes_length, kOffsetMax);
  offsets.bytes_data = told.offset(at.bytes_data, kOffsetMax);
  offsets.string_length = told.offset(at.string_length, kOffsetMax);
  offsets.string_state = told.offset(at.string_state, kOffsetMax);
  offsets.string_ascii_data = told.offset(at.ascii_size, kOffsetMax);
  offsets.string_other_data = offsets.string_ascii_data + kCompactMore;
  return offsets;
}

Result<Layout> from_debug_offsets(uint32_t version, std::string_view runtime) {
  constexpr std::string_view kCookie = "xdebugpy";
  if (!runtime.starts_with(kCookie))
    return runtime_error("its _PyRuntime does not begin with the offsets for debuggers");
  DebugOffsets told(runtime);
  if (told.word(kVersionWord) != version)
    return runtime_error("the offsets for debuggers in it are those of another version");
  if (told.word(kFreeThreadedWord) != 0)
    return runtime_error("free-threaded builds of CPython are not supported");
  const DebugWords& words = version / kMinor == kVersion313 ? k313 : k314;
  const Layout layout = {frame_layout(told, words), object_offsets(told, words)};
  if (told.failed()) return runtime_error("the offsets for debuggers in it make no sense");
  return layout;
}

}  // namespace

bool operator==(const Layout& a, const Layout& b) {
  // Bytes only, and no padding between them.
  return std::memcmp(&a.frames, &b.frames, sizeof(a.frames)) == 0 && a.objects == b.objects;
}

Result<Layout> find_layout(uint32_t version, std::string_view runtime) {
  switch (version / kMinor) {
    case kVersion311:
      return k311;
    case kVersion312:
      return k312;
    case kVersion313:
    case kVersion314:
      return from_debug_offsets(version, runtime);
    default:
      return runtime_error(
          fmt::format("CPython {}.{} is not supported: the frames of 3.11 to 3.14 can be read",
                      version >> 24, version >> 16 & 0xff));
  }
}

}  // namespace dwell::python
