#include "symbolize/table_compiler.h"

#include <signal.h>
#include <sys/eventfd.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "base/fd.h"

namespace dwell::symbolize {

struct TableCompiler::Desk {
  struct Order {
    uint32_t object;
    Task task;
  };
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Order> orders;
  std::vector<CompiledTable> finished;
  Fd finished_fd{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  bool working = false;
  bool closed = false;

  void serve() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return closed || !orders.empty(); });
      if (closed) return;
      const Order order = std::move(orders.front());
      orders.pop_front();
      working = true;
      lock.unlock();
      auto table = order.task();
      lock.lock();
      working = false;
      finished.push_back({order.object, std::move(table)});
      eventfd_write(finished_fd.get(), 1);
      changed.notify_all();
    }
  }
};

TableCompiler::TableCompiler() : desk_(std::make_shared<Desk>()) {
  // Signals are for the thread that records: this one may never come back to take them.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([desk = desk_] { desk->serve(); }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TableCompiler::~TableCompiler() {
  const std::lock_guard lock(desk_->mutex);
  desk_->closed = true;
  desk_->changed.notify_all();
}

bool TableCompiler::submit(uint32_t object, Task task) {
  const std::lock_guard lock(desk_->mutex);
  if (desk_->orders.size() >= kQueueMax) return false;
  desk_->orders.push_back({object, std::move(task)});
  desk_->changed.notify_all();
  return true;
}

int TableCompiler::fd() const { return desk_->finished_fd.get(); }

std::vector<CompiledTable> TableCompiler::take() {
  const std::lock_guard lock(desk_->mutex);
  eventfd_t ignored;
  eventfd_read(desk_->finished_fd.get(), &ignored);
  return std::exchange(desk_->finished, {});
}

bool TableCompiler::is_idle() const {
  const std::lock_guard lock(desk_->mutex);
  return desk_->finished.empty() && desk_->orders.empty() && !desk_->working;
}

void TableCompiler::wait(std::chrono::milliseconds patience) {
  std::unique_lock lock(desk_->mutex);
  desk_->changed.wait_for(lock, patience, [this] { return !desk_->finished.empty(); });
}

}  // namespace dwell::symbolize
