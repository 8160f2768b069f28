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

FileWorker::FileWorker() : FileWorker(kPatience) {}

FileWorker::FileWorker(std::chrono::milliseconds patience) : patience_(patience) { hire(); }

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

bool FileWorker::wait_for(std::function<void()> work, int patience_factor) {
  if (stuck_ >= kStuckMax) return false;
  {
    std::unique_lock lock(desk_->mutex);
    desk_->work = std::move(work);
    desk_->changed.notify_all();
    if (desk_->changed.wait_for(lock, patience_ * patience_factor, [this] { return !desk_->work; }))
      return true;
  }
  desk_->close();  // should it ever come back
  ++stuck_;
  patience_ = std::max(patience_ / 2, kPatienceMin);
  hire();
  return false;
}

}  // namespace dwell::symbolize
