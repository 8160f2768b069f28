#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/text.h"
#include "export/export.h"
#include "export/gzip.h"
#include "export/pprof.pb.h"
#include "export/words.h"

namespace dwell {
namespace {

// Samples held as messages at a time; serialised messages may simply follow each other.
constexpr int kSamplesPerChunk = 4096;
constexpr const char* kKernelFile = "[kernel.kallsyms]";  // the name that readers know

class PprofWriter {
 public:
  PprofWriter(const Profile& profile, View view) : profile_(profile), view_(view) {
    string("");  // must be the first
    label_ = {string("process"), string("thread"), string("pid"),      string("tid"),
              string("class"),   string("cause"),  string("censored"), string("overflow")};
    for (int i = 0; i < kWaitClassCount; ++i)
      classes_[i] = string(wait_class_name(static_cast<WaitClass>(i)));
  }

  std::string write() && {
    put_sample_types();
    put_mappings();
    put_functions_and_locations();
    put_comments();
    put_samples();
    for (const std::string_view text : strings_in_order_) out_.add_string_table(std::string(text));
    flush();
    return std::move(bytes_);
  }

 private:
  // Printable, so always valid UTF-8 as the format demands.
  int64_t string(std::string_view untrusted);
  // Of a profile string, looked up once.
  int64_t string(StringId id);

  void put_sample_types();
  void put_mappings();
  void put_functions_and_locations();
  void put_comments();
  void put_samples();
  void put_sample(const Row& row);
  void put_label(pprof_file::Sample& sample, int64_t key, int64_t text);
  void put_number(pprof_file::Sample& sample, int64_t key, uint64_t number);
  uint64_t function_of(int64_t name, int64_t system_name, int64_t file);
  void add_location(uint64_t id, int64_t name);
  void put_location(uint64_t id, std::span<const uint32_t> frames);
  uint64_t location_of(std::span<const uint32_t> frames);
  void flush();

  struct LabelKeys {
    int64_t process, thread, pid, tid, wait_class, cause, censored, overflow;
  };

  const Profile& profile_;
  const View view_;
  LabelKeys label_{};
  std::array<int64_t, kWaitClassCount> classes_{};
  pprof_file::Profile out_;
  std::string bytes_;
  std::unordered_map<std::string, int64_t> strings_;
  std::vector<std::string_view> strings_in_order_;  // views of the keys of strings_
  std::vector<int64_t> profile_strings_;            // by StringId; -1: not yet asked for
  std::map<std::array<int64_t, 3>, uint64_t> functions_;
  std::map<std::vector<uint32_t>, uint64_t> inlined_locations_;  // by frames
  std::vector<uint64_t> mapping_ids_;                            // by module; 0: has none
  uint64_t truncated_location_ = 0;
  uint64_t no_stack_location_ = 0;
};

int64_t PprofWriter::string(std::string_view untrusted) {
  const auto [entry, is_new] =
      strings_.try_emplace(printable(untrusted), static_cast<int64_t>(strings_.size()));
  if (is_new) strings_in_order_.push_back(entry->first);
  return entry->second;
}

int64_t PprofWriter::string(StringId id) {
  if (profile_strings_.empty()) profile_strings_.resize(profile_.strings.size(), -1);
  int64_t& known = profile_strings_[id];
  if (known < 0) known = string(profile_.text(id));
  return known;
}

void PprofWriter::put_sample_types() {
  for (const auto& [type, unit] :
       std::initializer_list<std::pair<const char*, const char*>>{{"events", "count"},
                                                                  {"off_cpu", "nanoseconds"},
                                                                  {"blocked", "nanoseconds"},
                                                                  {"run_queue", "nanoseconds"}}) {
    pprof_file::ValueType& sample_type = *out_.add_sample_type();
    sample_type.set_type(string(type));
    sample_type.set_unit(string(unit));
  }
  out_.set_default_sample_type(string(view_name(view_)));
  out_.set_time_nanos(static_cast<int64_t>(profile_.window.start_unix_ns));
  out_.set_duration_nanos(static_cast<int64_t>(profile_.window.length_ns()));
}

// The module of the program with the longest off-CPU time: readers take the first mapping for the
// main program. -1 if its file is not among the modules.
int64_t main_module(const Profile& profile) {
  std::vector<uint64_t> by_process(profile.processes.size());
  for (const Row& row : profile.rows)
    by_process[profile.threads[row.thread].process] += row.total_ns();
  const auto longest = std::ranges::max_element(by_process);
  if (longest == by_process.end()) return -1;
  const StringId path =
      profile.processes[static_cast<size_t>(longest - by_process.begin())].executable;
  for (size_t i = 0; i < profile.modules.size(); ++i)
    if (path != 0 && profile.modules[i].path == path) return static_cast<int64_t>(i);
  return -1;
}

// Addresses are ELF addresses already. A mapping of the whole address space says so: readers then
// look them up in the file as they are.
void PprofWriter::put_mappings() {
  const std::vector<Module>& modules = profile_.modules;
  std::vector<bool> all_named(modules.size(), true), lines(modules.size()), inlines(modules.size());
  for (const Frame& frame : profile_.frames) {
    if (frame.how == Resolution::kNone) all_named[frame.module] = false;
    if (frame.line != 0) lines[frame.module] = true;
    if (frame.inlined) inlines[frame.module] = true;
  }
  std::vector<size_t> order(modules.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const int64_t first = main_module(profile_);
  if (first >= 0) std::swap(order[0], order[static_cast<size_t>(first)]);
  mapping_ids_.resize(modules.size());
  for (const size_t i : order) {
    const Module& module = modules[i];
    if (profile_.text(module.path).empty()) continue;
    pprof_file::Mapping& mapping = *out_.add_mapping();
    mapping_ids_[i] = static_cast<uint64_t>(out_.mapping_size());
    mapping.set_id(mapping_ids_[i]);
    mapping.set_memory_limit(UINT64_MAX);
    mapping.set_filename(module.kind == ModuleKind::kKernel ? string(kKernelFile)
                                                            : string(module.path));
    mapping.set_build_id(string(module.build_id));
    mapping.set_has_functions(all_named[i]);
    mapping.set_has_filenames(lines[i]);
    mapping.set_has_line_numbers(lines[i]);
    mapping.set_has_inline_frames(inlines[i]);
  }
}

uint64_t PprofWriter::function_of(int64_t name, int64_t system_name, int64_t file) {
  const auto [entry, is_new] =
      functions_.try_emplace({name, system_name, file}, functions_.size() + 1);
  if (is_new) {
    pprof_file::Function& function = *out_.add_function();
    function.set_id(entry->second);
    function.set_name(name);
    function.set_system_name(system_name);
    function.set_filename(file);
  }
  return entry->second;
}

// Of what has no frame.
void PprofWriter::add_location(uint64_t id, int64_t name) {
  pprof_file::Location& location = *out_.add_location();
  location.set_id(id);
  location.add_line()->set_function_id(function_of(name, name, 0));
}

// One place in the code: functions that were inlined there, then the one that holds them.
void PprofWriter::put_location(uint64_t id, std::span<const uint32_t> frames) {
  pprof_file::Location& location = *out_.add_location();
  location.set_id(id);
  for (const uint32_t index : frames) {
    const Frame& frame = profile_.frames[index];
    const int64_t name = string(frame_name(profile_, frame));
    const int64_t system_name = frame.symbol == 0 ? name : string(frame.symbol);
    pprof_file::Line& line = *location.add_line();
    line.set_function_id(function_of(name, system_name, frame.line == 0 ? 0 : string(frame.file)));
    line.set_line(frame.line);
  }
  const Frame& holder = profile_.frames[frames.back()];
  location.set_mapping_id(mapping_ids_[holder.module]);
  location.set_address(holder.address);
}

// Location ids are frame indexes plus 1; two more follow for what has no frame, and then those of
// inlined functions.
void PprofWriter::put_functions_and_locations() {
  for (uint32_t i = 0; i < profile_.frames.size(); ++i) {
    if (!profile_.frames[i].inlined) put_location(uint64_t{i} + 1, {{i}});
    if (out_.location_size() >= kSamplesPerChunk) flush();
  }
  truncated_location_ = profile_.frames.size() + 1;
  no_stack_location_ = truncated_location_ + 1;
  add_location(truncated_location_, string(kTruncatedRoot));
  add_location(no_stack_location_, string(kNoStack));
}

uint64_t PprofWriter::location_of(std::span<const uint32_t> frames) {
  if (frames.size() == 1 && !profile_.frames[frames[0]].inlined) return uint64_t{frames[0]} + 1;
  const auto [entry, is_new] = inlined_locations_.try_emplace(
      {frames.begin(), frames.end()}, no_stack_location_ + inlined_locations_.size() + 1);
  if (is_new) put_location(entry->second, frames);
  return entry->second;
}

void PprofWriter::put_comments() {
  const Totals sum = totals(profile_);
  std::vector<std::string> comments = {
      fmt::format("dwell {}", profile_.dwell_version), fmt::format("target: {}", profile_.target),
      fmt::format("host: {}, Linux {}, {} CPUs", profile_.host, profile_.kernel, profile_.cpus),
      fmt::format("window: {} ns from {}", profile_.window.length_ns(),
                  format_time(profile_.window.start_unix_ns)),
      fmt::format("alive {} ns, running {} ns, lost {} ns, residual {} ns", sum.threads.alive_ns,
                  sum.threads.running_ns, sum.threads.lost_ns, sum.residual_ns)};
  for (const std::string& option : profile_.options) comments.push_back("option: " + option);
  for (const Loss& loss : profile_.losses) {
    if (loss.count == 0 && loss.ns.value_or(0) == 0) continue;
    comments.push_back(fmt::format("{} {}: {} times{}: {}", loss.is_loss ? "loss" : "note",
                                   loss.name, loss.count,
                                   loss.ns ? fmt::format(", {} ns", *loss.ns) : "", loss.meaning));
  }
  for (const std::string& warning : profile_.warnings) comments.push_back("warning: " + warning);
  for (const std::string& comment : comments) out_.add_comment(string(comment));
}

void PprofWriter::put_label(pprof_file::Sample& sample, int64_t key, int64_t text) {
  pprof_file::Label& label = *sample.add_label();
  label.set_key(key);
  // Without a text a label is a number.
  label.set_str(text != 0 ? text : string(kUnnamed));
}

void PprofWriter::put_number(pprof_file::Sample& sample, int64_t key, uint64_t number) {
  pprof_file::Label& label = *sample.add_label();
  label.set_key(key);
  label.set_num(static_cast<int64_t>(number));
}

void PprofWriter::put_sample(const Row& row) {
  pprof_file::Sample& sample = *out_.add_sample();
  const Stack& stack = profile_.stacks[row.stack];
  for (size_t i = 0, first = 0; i < stack.frames.size(); ++i) {
    if (profile_.frames[stack.frames[i]].inlined && i + 1 < stack.frames.size()) continue;
    sample.add_location_id(location_of(std::span(stack.frames).subspan(first, i + 1 - first)));
    first = i + 1;
  }
  if (stack.frames.empty()) sample.add_location_id(no_stack_location_);
  if (lacks_truncated_root(profile_, stack)) sample.add_location_id(truncated_location_);
  for (const uint64_t value : {row.count, row.total_ns(), row.blocked_ns, row.run_queue_ns})
    sample.add_value(static_cast<int64_t>(value));
  const Thread& thread = profile_.threads[row.thread];
  const Process& process = profile_.processes[thread.process];
  put_label(sample, label_.process, string(process.comm));
  put_label(sample, label_.thread, string(thread.comm));
  put_number(sample, label_.pid, process.pid);
  put_number(sample, label_.tid, thread.tid);
  put_label(sample, label_.wait_class, classes_[static_cast<size_t>(row.wait_class)]);
  put_label(sample, label_.cause, string(row.cause));
  if (row.censored_left || row.censored_right)
    put_label(sample, label_.censored,
              string(censored_name(row.censored_left, row.censored_right)));
  if (row.overflow) put_label(sample, label_.overflow, string("yes"));
}

void PprofWriter::put_samples() {
  for (const Row& row : profile_.rows) {
    put_sample(row);
    if (out_.sample_size() >= kSamplesPerChunk) flush();
  }
}

void PprofWriter::flush() {
  out_.AppendToString(&bytes_);
  out_.Clear();
}

}  // namespace

Result<std::string> pprof(const Profile& profile, View view) {
  return compress_gzip(PprofWriter(profile, view).write());
}

}  // namespace dwell
