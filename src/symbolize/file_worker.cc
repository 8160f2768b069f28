#include "symbolize/file_worker.h"

#include <signal.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace dwell::symbolize {

// Where one thread takes its work from.
struct FileWorker::Desk {
  std::mutex mutex;
  std::condition_variable changed;
  std::function<void()> work;
  bool closed = false;

  void serve() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return work || closed; });
      if (!work) return;
      const auto task = work;
      lock.unlock();
      task();
      lock.lock();
      work = nullptr;
      changed.notify_all();
    }
  }
  void close() {
    const std::lock_guard lock(mutex);
    closed = true;
    changed.notify_all();
  }
};

FileWorker::FileWorker(bool (*hurried)(), std::chrono::milliseconds patience,
                       std::chrono::milliseconds hurry)
    : hurried_(hurried), patience_(patience), hurry_(hurry) {
  hire();
}

FileWorker::~FileWorker() { desk_->close(); }

void FileWorker::hire() {
  desk_ = std::make_shared<Desk>();
  // Signals are for the thread that records: this one may never come back to take them.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([desk = desk_] { desk->serve(); }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

bool FileWorker::time_is_up() {
  if (hurried_ == nullptr || !hurried_()) return false;
  const auto now = std::chrono::steady_clock::now();
  if (!hurry_until_) hurry_until_ = now + hurry_;
  return now >= *hurry_until_;
}

// Whether the work is done; looks up now and then, since the hurry may begin meanwhile.
bool FileWorker::await(std::chrono::milliseconds patience) {
  constexpr std::chrono::milliseconds kLook{50};
  std::unique_lock lock(desk_->mutex);
  const auto end = std::chrono::steady_clock::now() + patience;
  for (;;) {
    const auto left = end - std::chrono::steady_clock::now();
    if (desk_->changed.wait_for(lock, std::clamp<std::chrono::nanoseconds>(left, {}, kLook),
                                [this] { return !desk_->work; }))
      return true;
    if (left <= kLook || time_is_up()) return false;
  }
}

bool FileWorker::wait_for(std::function<void()> work, int patience_factor) {
  if (stuck_ >= kStuckMax) return false;
  if (time_is_up()) {
    ++hurried_past_;
    return false;
  }
  {
    const std::lock_guard lock(desk_->mutex);
    desk_->work = std::move(work);
    desk_->changed.notify_all();
  }
  if (await(patience_ * patience_factor)) return true;
  desk_->close();  // should it ever come back
  hire();
  if (time_is_up()) {
    ++hurried_past_;
    return false;
  }
  ++stuck_;
  patience_ = std::max(patience_ / 2, kPatienceMin);
  return false;
}

}  // namespace dwell::symbolize
