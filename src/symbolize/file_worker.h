// Runs accesses to files of other processes on a thread of its own, with a deadline.
//
// Opening or reading a file on a dead NFS server or on a FUSE mount whose daemon is hostile can
// block for ever, and nothing interrupts it. Then the thread is left behind and another takes its
// place. Each such case halves the patience for the next, so that all of them together cost
// seconds. Files of a disk that is busy are slow one by one; who has asked to stop waits for all of
// them together no longer than `kHurry`. A task must own all that it touches: it may go on after
// its caller.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>

namespace dwell::symbolize {

class FileWorker {
 public:
  static constexpr std::chrono::milliseconds kPatience{2000};
  static constexpr std::chrono::milliseconds kPatienceMin{20};
  static constexpr int kStuckMax = 64;  // threads left behind; then every task is refused
  static constexpr std::chrono::milliseconds kHurry{5000};

  // `hurried` tells whether somebody waits for the end; null: nobody ever does.
  explicit FileWorker(bool (*hurried)() = nullptr, std::chrono::milliseconds patience = kPatience,
                      std::chrono::milliseconds hurry = kHurry);
  ~FileWorker();
  FileWorker(const FileWorker&) = delete;
  FileWorker& operator=(const FileWorker&) = delete;

  // The result of `task`, or nothing if it took too long. Much work deserves more patience.
  template <typename Task, typename Value = std::invoke_result_t<Task>>
  std::optional<Value> run(Task task, int patience_factor = 1);
  int stuck() const { return stuck_; }
  // Tasks that were refused or left since there was no time left.
  int hurried_past() const { return hurried_past_; }

 private:
  struct Desk;
  bool wait_for(std::function<void()> work, int patience_factor);
  bool await(std::chrono::milliseconds patience);
  bool time_is_up();
  void hire();

  bool (*const hurried_)();
  std::chrono::milliseconds patience_;
  const std::chrono::milliseconds hurry_;
  std::optional<std::chrono::steady_clock::time_point> hurry_until_;
  int hurried_past_ = 0;
  std::shared_ptr<Desk> desk_;  // shared with its thread, which may outlive us
  int stuck_ = 0;
};

template <typename Task, typename Value>
std::optional<Value> FileWorker::run(Task task, int patience_factor) {
  auto result = std::make_shared<std::optional<Value>>();
  auto owned = std::make_shared<Task>(std::move(task));
  if (!wait_for([result, owned] { result->emplace((*owned)()); }, patience_factor))
    return std::nullopt;
  return std::move(*result);
}

}  // namespace dwell::symbolize
