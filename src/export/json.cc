#include <fmt/format.h>

#include "export/export.h"
#include "export/json_health.h"
#include "export/json_writer.h"
#include "export/words.h"

namespace dwell {
namespace {

constexpr int kJsonVersion = 1;

void write_times(JsonWriter& out, const ThreadTimes& times) {
  out.begin_object();
  out.field("alive_ns", times.alive_ns);
  out.field("running_ns", times.running_ns);
  out.field("run_queue_ns", times.run_queue_ns);
  out.field("blocked_ns", times.blocked_ns);
  out.field("censored_run_queue_ns", times.censored_run_queue_ns);
  out.field("censored_blocked_ns", times.censored_blocked_ns);
  out.field("lost_ns", times.lost_ns);
  out.field("filtered_ns", times.filtered_ns);
  out.field("overflow_ns", times.overflow_ns);
  out.field("intervals", times.intervals);
  out.field("blocked_intervals", times.blocked_intervals);
  out.field("filtered_intervals", times.filtered_intervals);
  out.field("overflow_intervals", times.overflow_intervals);
  out.end_object();
}

// `write_element(i)` for each element, one per line.
template <typename Table, typename Write>
void write_table(JsonWriter& out, std::string_view name, const Table& table, Write write_element) {
  out.break_line();
  out.key(name);
  out.begin_array();
  for (const auto& element : table) {
    out.break_line();
    write_element(element);
  }
  out.end_array();
}

void write_head(JsonWriter& out, const Profile& profile) {
  out.field("format", "dwell-profile");
  out.field("version", kJsonVersion);
  out.field("dwell", profile.dwell_version);
  out.field("host", profile.host);
  out.field("kernel", profile.kernel);
  out.field("cpus", profile.cpus);
  out.field("target", profile.target);
  out.key("options");
  out.begin_array();
  for (const std::string& option : profile.options) out.value(option);
  out.end_array();
  out.break_line();
  out.key("window");
  out.begin_object();
  out.field("start_ns", profile.window.start_ns);
  out.field("end_ns", profile.window.end_ns);
  out.field("length_ns", profile.window.length_ns());
  out.field("start_unix_ns", profile.window.start_unix_ns);
  out.field("end_unix_ns", profile.window.end_unix_ns);
  out.field("start_time", format_time(profile.window.start_unix_ns));
  out.end_object();
}

void write_totals(JsonWriter& out, const Profile& profile) {
  const Totals sum = totals(profile);
  out.break_line();
  out.key("totals");
  out.begin_object();
  out.field("intervals", sum.intervals);
  out.field("off_cpu_ns", sum.off_cpu_ns);
  out.field("blocked_ns", sum.blocked_ns);
  out.field("run_queue_ns", sum.run_queue_ns);
  out.key("threads");
  write_times(out, sum.threads);
  out.field("residual_ns", sum.residual_ns);
  out.end_object();
}

void write_frames(JsonWriter& out, const Profile& profile) {
  write_table(out, "modules", profile.modules, [&](const Module& module) {
    out.begin_object();
    out.field("path", profile.text(module.path));
    out.field("build_id", profile.text(module.build_id));
    out.field("kind", module_kind_name(module.kind));
    out.end_object();
  });
  write_table(out, "frames", profile.frames, [&](const Frame& frame) {
    out.begin_object();
    out.field("name", frame_text(profile, frame));
    out.field("function", profile.text(frame.function));
    out.field("symbol", profile.text(frame.symbol));
    out.field("module", frame.module);
    out.field("address", fmt::format("{:#x}", frame.address));
    out.field("offset", frame.offset);
    out.field("how", resolution_name(frame.how));
    out.field("kind", frame_kind_name(frame.kind));
    if (frame.line != 0) {
      out.field("file", profile.text(frame.file));
      out.field("line", frame.line);
    }
    if (frame.inlined) out.field("inlined", true);
    out.end_object();
  });
  write_table(out, "stacks", profile.stacks, [&](const Stack& stack) {
    out.begin_object();
    out.key("frames");
    out.begin_array();
    for (uint32_t frame : stack.frames) out.value(frame);
    out.end_array();
    out.field("user_complete", stack.user_complete);
    out.field("truncated", stack.truncated);
    write_walk(out, profile, stack);
    out.end_object();
  });
}

void write_thread(JsonWriter& out, const Profile& profile, const Thread& thread) {
  out.begin_object();
  out.field("process", thread.process);
  out.field("tid", thread.tid);
  out.field("name", profile.text(thread.comm));
  out.field("birth_ns", thread.birth_ns);
  out.field("end_ns", thread.end_ns);
  out.field("end", thread_end_name(thread.end));
  out.field("kernel", thread.kernel_thread);
  out.field("folded", thread.folded ? thread.folded_count : 0);
  out.key("times");
  write_times(out, thread.times);
  out.field("residual_ns", thread.times.residual_ns());
  out.key("schedstat");
  if (thread.schedstat) {
    out.begin_object();
    out.field("on_cpu_ns", thread.schedstat->on_cpu_ns);
    out.field("run_queue_ns", thread.schedstat->run_queue_ns);
    out.field("stretch_ns", thread.schedstat->stretch_ns);
    out.end_object();
  } else {
    out.null();
  }
  out.end_object();
}

void write_threads(JsonWriter& out, const Profile& profile) {
  write_table(out, "processes", profile.processes, [&](const Process& process) {
    out.begin_object();
    out.field("pid", process.pid);
    out.field("parent_pid", process.parent_pid);
    out.field("exec_id", process.exec_id);
    out.field("start_boottime_ns", process.start_boottime_ns);
    out.field("name", profile.text(process.comm));
    out.field("executable", profile.text(process.executable));
    out.field("command_line", profile.text(process.command_line));
    out.end_object();
  });
  write_table(out, "threads", profile.threads,
              [&](const Thread& thread) { write_thread(out, profile, thread); });
}

void write_histogram(JsonWriter& out, const Row& row) {
  out.begin_array();
  for (int bucket = 0; bucket < kHistogramBuckets; ++bucket) {
    if (row.histogram[bucket] == 0) continue;
    out.begin_array();
    // The first bucket also holds everything shorter.
    out.value(bucket == 0 ? uint64_t{0} : uint64_t{1} << (bucket + kHistogramShift));
    out.value(row.histogram[bucket]);
    out.end_array();
  }
  out.end_array();
}

void write_row(JsonWriter& out, const Profile& profile, const Row& row) {
  out.begin_object();
  out.field("thread", row.thread);
  out.field("stack", row.stack);
  out.field("class", wait_class_name(row.wait_class));
  out.field("cause", profile.text(row.cause));
  out.field("state", row.state);
  out.field("censored", censored_name(row.censored_left, row.censored_right));
  out.field("overflow", row.overflow);
  out.field("count", row.count);
  out.field("total_ns", row.total_ns());
  out.field("blocked_ns", row.blocked_ns);
  out.field("run_queue_ns", row.run_queue_ns);
  out.field("max_ns", row.max_ns);
  out.key("histogram");
  write_histogram(out, row);
  out.end_object();
}

void write_timeline(JsonWriter& out, const Profile& profile) {
  out.break_line();
  out.key("timeline");
  if (profile.timeline_min_ns) {
    out.begin_object();
    out.field("min_ns", *profile.timeline_min_ns);
    out.end_object();
  } else {
    out.null();
  }
  write_table(out, "intervals", profile.timeline, [&](const Interval& interval) {
    out.begin_object();
    out.field("thread", interval.thread);
    out.field("stack", interval.stack);
    out.field("class", wait_class_name(interval.wait_class));
    out.field("cause", profile.text(interval.cause));
    out.field("state", interval.state);
    out.field("censored", censored_name(interval.censored_left, interval.censored_right));
    out.field("cpu", interval.cpu);
    out.field("start_ns", interval.start_ns);
    out.field("blocked_ns", interval.blocked_ns);
    out.field("run_queue_ns", interval.run_queue_ns);
    out.end_object();
  });
}

void write_findings(JsonWriter& out, const Profile& profile) {
  write_table(out, "losses", profile.losses, [&](const Loss& loss) {
    out.begin_object();
    out.field("name", loss.name);
    out.field("meaning", loss.meaning);
    out.field("count", loss.count);
    out.key("ns");
    if (loss.ns) {
      out.value(*loss.ns);
    } else {
      out.null();
    }
    out.field("loss", loss.is_loss);
    out.end_object();
  });
  write_table(out, "unresolved", profile.unresolved, [&](const UnresolvedModule& unresolved) {
    out.begin_object();
    out.field("module", unresolved.module);
    out.field("frames", unresolved.frames);
    out.field("reason", unresolved.reason);
    out.field("remedy", unresolved.remedy);
    out.end_object();
  });
  write_table(out, "warnings", profile.warnings,
              [&](const std::string& warning) { out.value(warning); });
  out.break_line();
  out.key("cost");
  out.begin_object();
  out.field("kernel_memory_bytes", profile.kernel_memory_bytes);
  out.field("user_memory_bytes", profile.user_memory_bytes);
  out.field("recorder_cpu_ns", profile.recorder_cpu_ns);
  out.end_object();
}

}  // namespace

std::string json(const Profile& profile) {
  JsonWriter out;
  out.begin_object();
  write_head(out, profile);
  write_totals(out, profile);
  write_frames(out, profile);
  write_threads(out, profile);
  write_table(out, "rows", profile.rows, [&](const Row& row) { write_row(out, profile, row); });
  write_timeline(out, profile);
  write_findings(out, profile);
  write_stack_health(out, profile);
  out.end_object();
  std::string document = std::move(out).take();
  document += '\n';
  return document;
}

}  // namespace dwell
