// What the tests of ebpf-for-windows assert about its perf event arrays, asserted about ours.
#include "event_array/windows_compat.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <map>

#include "event_array/user_map_fixture.h"

namespace dwell {
inline namespace v0 {
namespace windows {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t kCurrent = ring::kCurrentCpu;

std::unique_ptr<PerfEventArray> create(uint32_t ring_bytes = 64 << 10) {
  auto array = PerfEventArray::create({0, 0, ring_bytes});
  if (!array) ADD_FAILURE() << static_cast<int>(array.error());
  return array ? std::move(*array) : nullptr;
}

std::vector<uint32_t> online() { return read_cpu_list("online").value(); }

TEST(WindowsMap, IsCreatedFromTheBytesOfARing) {
  EXPECT_NE(create(4096), nullptr);
  for (const MapDefinition& bad :
       {MapDefinition{0, 0, 0}, MapDefinition{0, 0, 5000}, MapDefinition{4, 20, 20},
        MapDefinition{4, 0, 65536}, MapDefinition{0, 4, 65536}}) {
    const auto array = PerfEventArray::create(bad);
    ASSERT_FALSE(array);
    EXPECT_EQ(array.error(), Code::kInvalidArgument);
  }
}

TEST(WindowsMap, RefusesMapOperationsWrongSizesFirst) {
  const auto array = create();
  EXPECT_EQ(array->update(4, 0), Code::kInvalidArgument);
  EXPECT_EQ(array->update(0, 4), Code::kInvalidArgument);
  EXPECT_EQ(array->update(0, 0), Code::kOperationNotSupported);
  EXPECT_EQ(array->find(4, 0), Code::kInvalidArgument);
  EXPECT_EQ(array->find(0, 0), Code::kOperationNotSupported);
  EXPECT_EQ(array->erase(0), Code::kOperationNotSupported);
  EXPECT_EQ(array->next_key(0), Code::kOperationNotSupported);
  EXPECT_EQ(array->push(0), Code::kOperationNotSupported);
  EXPECT_EQ(array->pop(0), Code::kOperationNotSupported);
  EXPECT_EQ(array->peek(4), Code::kInvalidArgument);
}

TEST(WindowsMap, AnOutputBeforeTheQueryAnswersItAtOnce) {
  const auto array = create();
  PinToCpu pin(online()[0]);
  ASSERT_EQ(array->output(kCurrent, numbered(1)), 0);
  int answers = 0;
  EXPECT_EQ(array->async_query(online()[0],
                               [&](const QueryAnswer& answer) {
                                 ++answers;
                                 EXPECT_FALSE(answer.canceled);
                                 EXPECT_EQ(answer.lost, 0u);
                                 EXPECT_EQ(answer.producer, 24u) << "8 bytes and their header";
                                 EXPECT_EQ(answer.consumer, 0u);
                               }),
            Code::kPending);
  EXPECT_EQ(answers, 1);
  EXPECT_EQ(array->return_buffer(online()[0], 24), Code::kSuccess);
  QueryAnswer now;
  EXPECT_EQ(array->query(online()[0], now), Code::kSuccess);
  EXPECT_EQ(now.consumer, 24u);
  EXPECT_EQ(array->return_buffer(online()[0], 48), Code::kInvalidArgument);
}

TEST(WindowsMap, AnswersEachCpusQueryWithItsOwnOutput) {
  const auto array = create();
  std::atomic<int> answers[64] = {};
  for (const uint32_t cpu : online())
    ASSERT_EQ(array->async_query(cpu,
                                 [&answers](const QueryAnswer& answer) {
                                   EXPECT_FALSE(answer.canceled);
                                   EXPECT_EQ(answer.producer, 24u);
                                   ++answers[answer.cpu];
                                 }),
              Code::kPending);
  for (const uint32_t cpu : online()) {
    PinToCpu pin(cpu);
    ASSERT_EQ(array->output(kCurrent, numbered(cpu)), 0);
    for (int i = 0; i < 5000 && answers[cpu] == 0; ++i) std::this_thread::sleep_for(1ms);
    EXPECT_EQ(answers[cpu], 1);
    EXPECT_FALSE(array->cancel(cpu)) << "nothing left to cancel";
  }
}

TEST(WindowsMap, HasOneQueryPerRingWhichCanBeCanceled) {
  int canceled = 0;  // outlives the array, whose end answers the last query
  const auto array = create();
  const auto count = [&](const QueryAnswer& answer) { canceled += answer.canceled; };
  ASSERT_EQ(array->async_query(0, count), Code::kPending);
  EXPECT_EQ(array->async_query(0, count), Code::kInvalidArgument) << "a second one";
  EXPECT_TRUE(array->cancel(0));
  EXPECT_EQ(canceled, 1);
  EXPECT_FALSE(array->cancel(0));
  EXPECT_EQ(array->async_query(0, count), Code::kPending);
}

TEST(WindowsMap, GoingAwayCancelsItsQueries) {
  int canceled = 0;
  {
    const auto array = create();
    array->async_query(0, [&](const QueryAnswer& answer) { canceled += answer.canceled; });
  }
  EXPECT_EQ(canceled, 1);
}

TEST(WindowsMap, RefusesAnIndexBeyondItsRings) {
  const auto array = create();
  QueryAnswer answer;
  for (const uint64_t index :
       {uint64_t{array->map().rings()}, uint64_t{UINT32_MAX}, uint64_t{1} << 32}) {
    EXPECT_EQ(array->query(index, answer), Code::kInvalidArgument);
    EXPECT_EQ(array->async_query(index, [](const QueryAnswer&) {}), Code::kInvalidArgument);
    EXPECT_EQ(array->return_buffer(index, 0), Code::kInvalidArgument);
  }
}

TEST(WindowsMap, CapturesContextAsAsked) {
  const auto array = create();
  PinToCpu pin(online()[0]);
  Bytes context(64);
  for (size_t i = 0; i < 64; ++i) context[i] = static_cast<std::byte>(i * 3);
  const DataContext data{context.data(), context.data() + 64};
  ASSERT_EQ(array->output_with_capture(&data, kCurrent | 10ull << 32, numbered(5)), 0);
  Bytes seen;
  auto buffer = PerfBuffer::create(
      *array, 0, [&](uint32_t, std::span<const std::byte> b) { seen.assign(b.begin(), b.end()); },
      [](uint32_t, uint64_t) {});
  ASSERT_EQ((*buffer)->consume(), 1);
  ASSERT_EQ(seen.size(), 18u);
  EXPECT_TRUE(std::equal(seen.begin() + 8, seen.end(), context.begin()));

  EXPECT_EQ(array->output_with_capture(&data, kCurrent | 65ull << 32, numbered(5)), -6);
  EXPECT_EQ(array->output_with_capture(nullptr, kCurrent | 1ull << 32, numbered(5)), -18);
  const DataContext none;
  EXPECT_EQ(array->output_with_capture(&none, kCurrent | 1ull << 32, numbered(5)), -18);
  EXPECT_EQ(array->output_with_capture(nullptr, kCurrent, numbered(5)), 0);
}

TEST(WindowsMap, ChecksTheTargetCpu) {
  const auto array = create();
  PinToCpu pin(online()[0]);
  EXPECT_EQ(array->output(online()[0], numbered(1)), 0);
  if (online().size() > 1) {
    EXPECT_EQ(array->output(online()[1], numbered(1)), -6);
  }
  EXPECT_EQ(array->output(array->map().rings(), numbered(1)), -6);
  EXPECT_EQ(array->output(kCurrent, {}), -6) << "an empty record";
  EXPECT_EQ(array->output(kCurrent, Bytes(65517)), -6);
  EXPECT_EQ(array->output(1ull << 60 | kCurrent, numbered(1)), 0) << "reserved bits are ignored";
}

class BufferTest : public testing::Test {
 protected:
  void open(uint32_t ring_bytes = 64 << 10, uint64_t flags = 0) {
    array_ = create(ring_bytes);
    auto buffer = PerfBuffer::create(
        *array_, 0,
        [this](uint32_t cpu, std::span<const std::byte> data) {
          uint64_t id = 0;
          std::memcpy(&id, data.data(), std::min(sizeof id, data.size()));
          ids_[cpu].push_back(id);
          ++samples_;
        },
        [this](uint32_t, uint64_t lost) {
          lost_ += lost;
          samples_before_lost_ = samples_.load();
        },
        flags);
    ASSERT_TRUE(buffer);
    buffer_ = std::move(*buffer);
  }
  std::unique_ptr<PerfEventArray> array_;
  std::map<uint32_t, std::vector<uint64_t>> ids_;
  std::atomic<uint64_t> samples_ = 0, lost_ = 0, samples_before_lost_ = 0;
  std::unique_ptr<PerfBuffer> buffer_;  // last: its thread uses the others
};

TEST_F(BufferTest, RefusesWhatTheirsRefuses) {
  const auto array = create();
  const auto sample = [](uint32_t, std::span<const std::byte>) {};
  const auto lost = [](uint32_t, uint64_t) {};
  EXPECT_EQ(PerfBuffer::create(*array, 0, nullptr, lost).error(), EINVAL);
  EXPECT_EQ(PerfBuffer::create(*array, 0, sample, nullptr).error(), EINVAL);
  EXPECT_EQ(PerfBuffer::create(*array, 1, sample, lost).error(), EINVAL);
  EXPECT_EQ(PerfBuffer::create(*array, 0, sample, lost, 2).error(), EINVAL);
}

TEST_F(BufferTest, DeliversEveryCpusWritesInOrder) {
  open();
  EXPECT_EQ(buffer_->consume(), 0);
  EXPECT_EQ(buffer_->buffer_count(), array_->map().rings());
  for (const uint32_t cpu : online()) {
    PinToCpu pin(cpu);
    for (uint64_t id = 0; id < 3; ++id) ASSERT_EQ(array_->write(numbered(id)), Code::kSuccess);
    EXPECT_EQ(buffer_->consume_buffer(cpu), 3);
    EXPECT_EQ(ids_[cpu], (std::vector<uint64_t>{0, 1, 2}));
  }
  EXPECT_EQ(buffer_->consume_buffer(9999), -EINVAL);
  EXPECT_EQ(lost_, 0u);
}

TEST_F(BufferTest, PollsWithATimeout) {
  open();
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(buffer_->poll(0), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 100ms);
  EXPECT_EQ(buffer_->poll(100), 0);
  EXPECT_GE(std::chrono::steady_clock::now() - start, 50ms);
  array_->write(numbered(1));
  EXPECT_EQ(buffer_->poll(1000), 1);
}

TEST_F(BufferTest, SignalsItsWaitHandleAfterAWrite) {
  open();
  pollfd p = {buffer_->wait_handle(), POLLIN, 0};
  EXPECT_EQ(::poll(&p, 1, 0), 0);
  array_->write(numbered(1));
  EXPECT_EQ(::poll(&p, 1, 5000), 1);
  EXPECT_EQ(buffer_->consume(), 1);
}

TEST_F(BufferTest, CountsWhatDoesNotFitAndTellsItBeforeTheBatch) {
  open(16 << 10);
  const Bytes payload(504 - 4);  // 512 with the Linux header; theirs fits 32, ours 31
  for (const uint32_t cpu : online()) {
    PinToCpu pin(cpu);
    int failed = 0;
    for (int i = 0; i < 64; ++i) failed += array_->output(kCurrent, payload) == -12;
    EXPECT_EQ(failed, 33);
  }
  EXPECT_EQ(buffer_->consume(), static_cast<int>(31 * online().size()));
  EXPECT_EQ(lost_, 33 * online().size());
  EXPECT_EQ(samples_before_lost_, 31 * (online().size() - 1)) << "loss first, CPU by CPU";
}

TEST_F(BufferTest, CallsBackByItself) {
  open(64 << 10, PerfBuffer::kAutoCallback);
  EXPECT_EQ(buffer_->poll(0), -ENOTSUP);
  EXPECT_EQ(buffer_->consume(), -ENOTSUP);
  EXPECT_EQ(buffer_->consume_buffer(0), -ENOTSUP);
  EXPECT_EQ(buffer_->wait_handle(), -1);
  for (uint64_t id = 0; id < 5; ++id) array_->write(numbered(id));
  for (int i = 0; i < 5000 && samples_ < 5; ++i) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(samples_, 5u);
}

TEST_F(BufferTest, ReopensWhereTheLastOneStopped) {
  open();
  array_->write(numbered(1));
  EXPECT_EQ(buffer_->consume(), 1);
  buffer_.reset();
  array_->write(numbered(2));
  std::vector<uint64_t> ids;
  auto again = PerfBuffer::create(
      *array_, 0,
      [&](uint32_t, std::span<const std::byte> data) {
        uint64_t id = 0;
        std::memcpy(&id, data.data(), 8);
        ids.push_back(id);
      },
      [](uint32_t, uint64_t) {});
  EXPECT_EQ((*again)->consume(), 1);
  EXPECT_EQ(ids, std::vector<uint64_t>{2});
}

}  // namespace
}  // namespace windows
}  // namespace v0
}  // namespace dwell
