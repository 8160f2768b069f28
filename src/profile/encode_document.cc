#include <fmt/format.h>
#include <google/protobuf/arena.h>

#include <algorithm>

#include "profile/document.h"
#include "profile/dwell_file.h"
#include "profile/dwell_profile.pb.h"

namespace dwell {
namespace {

void put_recording(const Profile& profile, file::Recording& out) {
  out.set_dwell_version(profile.dwell_version);
  out.set_host(profile.host);
  out.set_kernel(profile.kernel);
  out.set_cpus(profile.cpus);
  out.set_target(profile.target);
  out.set_start_ns(profile.window.start_ns);
  out.set_end_ns(profile.window.end_ns);
  out.set_start_unix_ns(profile.window.start_unix_ns);
  out.set_end_unix_ns(profile.window.end_unix_ns);
  out.set_kernel_memory_bytes(profile.kernel_memory_bytes);
  out.set_user_memory_bytes(profile.user_memory_bytes);
  out.set_recorder_cpu_ns(profile.recorder_cpu_ns);
}

void put_frames(const Profile& profile, file::Document& out) {
  for (const Module& module : profile.modules) {
    file::Module& m = *out.add_modules();
    m.set_path(module.path);
    m.set_build_id(module.build_id);
    m.set_kind(static_cast<uint32_t>(module.kind));
  }
  file::Frames& columns = *out.mutable_frames();
  for (const Frame& frame : profile.frames) {
    columns.add_function(frame.function);
    columns.add_symbol(frame.symbol);
    columns.add_module(frame.module);
    columns.add_address(frame.address);
    columns.add_offset(frame.offset);
    columns.add_how(static_cast<uint32_t>(frame.how));
    columns.add_kind(static_cast<uint32_t>(frame.kind));
  }
  const auto is_python = [](const Frame& frame) { return frame.how == Resolution::kPython; };
  if (std::ranges::none_of(profile.frames, is_python)) return;
  for (const Frame& frame : profile.frames) {
    columns.add_line(is_python(frame) ? frame.line : 0);
    columns.add_file(is_python(frame) ? frame.file : 0);
  }
}

void put_stacks(const Profile& profile, file::Stacks& out) {
  size_t frames = 0;
  for (const Stack& stack : profile.stacks) frames += stack.frames.size();
  out.mutable_frames()->Reserve(static_cast<int>(frames));
  for (const Stack& stack : profile.stacks) {
    out.add_depth(static_cast<uint32_t>(stack.frames.size()));
    out.add_flags(uint32_t{stack.user_complete} | uint32_t{stack.truncated} << 1);
    for (uint32_t frame : stack.frames) out.add_frames(frame);
    out.add_walk_end(static_cast<uint32_t>(stack.walk.end));
    out.add_pointer_steps_low(stack.walk.pointer_steps[0]);
    out.add_pointer_steps_high(stack.walk.pointer_steps[1]);
  }
}

void put_process(const Process& process, file::Process& out) {
  out.set_pid(process.pid);
  out.set_parent_pid(process.parent_pid);
  out.set_exec_id(process.exec_id);
  out.set_start_boottime_ns(process.start_boottime_ns);
  out.set_comm(process.comm);
  out.set_executable(process.executable);
  out.set_command_line(process.command_line);
}

void put_times(const ThreadTimes& times, file::Thread& out) {
  out.set_alive_ns(times.alive_ns);
  out.set_running_ns(times.running_ns);
  out.set_run_queue_ns(times.run_queue_ns);
  out.set_blocked_ns(times.blocked_ns);
  out.set_censored_run_queue_ns(times.censored_run_queue_ns);
  out.set_censored_blocked_ns(times.censored_blocked_ns);
  out.set_lost_ns(times.lost_ns);
  out.set_filtered_ns(times.filtered_ns);
  out.set_overflow_ns(times.overflow_ns);
  out.set_intervals(times.intervals);
  out.set_blocked_intervals(times.blocked_intervals);
  out.set_filtered_intervals(times.filtered_intervals);
  out.set_overflow_intervals(times.overflow_intervals);
}

void put_thread(const Thread& thread, file::Thread& out) {
  out.set_process(thread.process);
  out.set_tid(thread.tid);
  out.set_start_boottime_ns(thread.start_boottime_ns);
  out.set_birth_ns(thread.birth_ns);
  out.set_end_ns(thread.end_ns);
  out.set_comm(thread.comm);
  out.set_end(static_cast<uint32_t>(thread.end));
  out.set_flags(uint32_t{thread.kernel_thread} | uint32_t{thread.folded} << 1);
  out.set_folded_count(thread.folded_count);
  put_times(thread.times, out);
  if (thread.schedstat) {
    out.set_schedstat_on_cpu_ns(thread.schedstat->on_cpu_ns);
    out.set_schedstat_run_queue_ns(thread.schedstat->run_queue_ns);
    out.set_schedstat_stretch_ns(thread.schedstat->stretch_ns);
  }
}

void put_row(const Row& row, file::Rows& out) {
  out.add_thread(row.thread);
  out.add_stack(row.stack);
  out.add_cause(row.cause);
  out.add_wait_class(static_cast<uint32_t>(row.wait_class));
  out.add_state(row.state);
  out.add_flags(uint32_t{row.censored_left} | uint32_t{row.censored_right} << 1 |
                uint32_t{row.overflow} << 2);
  out.add_count(row.count);
  out.add_blocked_ns(row.blocked_ns);
  out.add_run_queue_ns(row.run_queue_ns);
  out.add_max_ns(row.max_ns);
  uint32_t mask = 0;
  for (int bucket = 0; bucket < kHistogramBuckets; ++bucket) {
    if (row.histogram[bucket] == 0) continue;
    mask |= uint32_t{1} << bucket;
    out.add_histogram_counts(row.histogram[bucket]);
  }
  out.add_histogram_mask(mask);
}

void put_timeline(const Profile& profile, file::Timeline& out) {
  out.set_min_ns(*profile.timeline_min_ns);
  uint64_t before = profile.window.start_ns;
  for (const Interval& interval : profile.timeline) {
    out.add_thread(interval.thread);
    out.add_stack(interval.stack);
    out.add_cause(interval.cause);
    out.add_wait_class(static_cast<uint32_t>(interval.wait_class));
    out.add_flags(uint32_t{interval.censored_left} | uint32_t{interval.censored_right} << 1);
    out.add_state(interval.state);
    out.add_cpu(interval.cpu);
    out.add_start_step_ns(static_cast<int64_t>(interval.start_ns - before));
    out.add_blocked_ns(interval.blocked_ns);
    out.add_run_queue_ns(interval.run_queue_ns);
    before = interval.start_ns;
  }
}

void put_findings(const Profile& profile, file::Document& out) {
  for (const Loss& loss : profile.losses) {
    file::Loss& l = *out.add_losses();
    l.set_name(loss.name);
    l.set_meaning(loss.meaning);
    l.set_count(loss.count);
    if (loss.ns) l.set_ns(*loss.ns);
    l.set_is_loss(loss.is_loss);
  }
  for (const UnresolvedModule& unresolved : profile.unresolved) {
    file::UnresolvedModule& u = *out.add_unresolved();
    u.set_module(unresolved.module);
    u.set_frames(unresolved.frames);
    u.set_reason(unresolved.reason);
    u.set_remedy(unresolved.remedy);
  }
  for (const std::string& option : profile.options) out.add_options(option);
  for (const std::string& warning : profile.warnings) out.add_warnings(warning);
}

}  // namespace

Result<std::string> encode_document(const Profile& profile) {
  DWELL_TRY(check_encodable(profile));
  google::protobuf::Arena arena;
  auto& document = *google::protobuf::Arena::CreateMessage<file::Document>(&arena);
  put_recording(profile, *document.mutable_recording());
  for (const std::string& text : profile.strings) document.add_strings(text);
  put_frames(profile, document);
  put_stacks(profile, *document.mutable_stacks());
  for (const Process& process : profile.processes) put_process(process, *document.add_processes());
  for (const Thread& thread : profile.threads) put_thread(thread, *document.add_threads());
  for (const Row& row : profile.rows) put_row(row, *document.mutable_rows());
  if (profile.timeline_min_ns) put_timeline(profile, *document.mutable_timeline());
  put_findings(profile, document);
  const size_t bytes = document.ByteSizeLong();
  if (bytes > kDocumentBytesMax)
    return runtime_error(fmt::format(
        "cannot encode the profile: {} bytes, the limit is {}; record fewer processes or for a "
        "shorter time",
        bytes, kDocumentBytesMax));
  std::string out;
  document.SerializeToString(&out);
  return out;
}

}  // namespace dwell
