#include "event_array/async_query.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace dwell {
inline namespace v0 {
namespace {

// Data below the watermark is noticed after this long at most.
constexpr int kSweepMs = 100;

}  // namespace

Result<std::unique_ptr<AsyncQueries>> AsyncQueries::start(UserEventMap& map,
                                                          UserEventArray& array) {
  std::unique_ptr<AsyncQueries> queries(new AsyncQueries(map, array));
  queries->poke_ = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!queries->poke_) return errno_error(errno, "cannot create an eventfd");
  queries->thread_ = std::thread([q = queries.get()] { q->run(); });
  return queries;
}

AsyncQueries::AsyncQueries(UserEventMap& map, UserEventArray& array)
    : map_(map), array_(array), waiting_(array.slots()) {}

AsyncQueries::~AsyncQueries() {
  ending_ = true;
  poke();
  if (thread_.joinable()) thread_.join();
  for (uint32_t cpu = 0; cpu < waiting_.size(); ++cpu) cancel(cpu);
}

void AsyncQueries::poke() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = write(poke_.get(), &one, sizeof one);
}

// The question, so that whoever gets it answers it, once.
AsyncQueries::Done AsyncQueries::take(uint32_t cpu) {
  std::lock_guard lock(mutex_);
  return std::exchange(waiting_[cpu], nullptr);
}

bool AsyncQueries::outstanding(uint32_t cpu) const {
  std::lock_guard lock(mutex_);
  return cpu < waiting_.size() && waiting_[cpu] != nullptr;
}

QueryAnswer AsyncQueries::answer_for(uint32_t cpu, bool canceled) {
  const ring::MetaPage& meta = *map_.ring(cpu).meta;
  return {canceled, cpu, __atomic_load_n(&meta.data_head, __ATOMIC_ACQUIRE),
          __atomic_load_n(&meta.data_tail, __ATOMIC_RELAXED), map_.counts(cpu).lost};
}

Status AsyncQueries::query(uint32_t cpu, Done done) {
  {
    std::lock_guard lock(mutex_);
    if (cpu >= waiting_.size() || waiting_[cpu] != nullptr || array_.closed()) {
      auto error = usage_error(fmt::format(
          "cannot ask for data of ring {}: there is none, or a question is outstanding", cpu));
      error.error().code = EINVAL;
      return error;
    }
    waiting_[cpu] = std::move(done);
  }
  if (array_.has_data(cpu)) {
    if (const Done answer = take(cpu)) answer(answer_for(cpu, false));
  } else {
    poke();
  }
  return {};
}

bool AsyncQueries::cancel(uint32_t cpu) {
  if (cpu >= waiting_.size()) return false;
  const Done done = take(cpu);
  if (!done) return false;
  done(answer_for(cpu, true));
  return true;
}

void AsyncQueries::answer_ready() {
  for (uint32_t cpu = 0; cpu < waiting_.size(); ++cpu) {
    if (!outstanding(cpu)) continue;
    if (array_.closed())
      cancel(cpu);
    else if (array_.has_data(cpu))
      if (const Done done = take(cpu)) done(answer_for(cpu, false));
  }
}

void AsyncQueries::run() {
  while (!ending_) {
    (void)array_.arm();  // then look: what comes later wakes us
    answer_ready();
    pollfd fds[] = {{array_.fd(), POLLIN, 0}, {poke_.get(), POLLIN, 0}};
    poll(fds, 2, kSweepMs);
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t n = read(poke_.get(), &count, sizeof count);
  }
}

}  // namespace v0
}  // namespace dwell
