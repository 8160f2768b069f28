#include <gtest/gtest.h>

#include "event_array/user_event_array.h"
#include "runtime/event_map.h"
#include "runtime/object.h"
#include "runtime/packet.h"

extern "C" const dwell_native_object dwell_native_short_packets;

using namespace dwell;

TEST(ShortPackets, AreDroppedAndTold) {
  // A machine of four CPUs, at one second past its boot; the object on it.
  runtime::Machine machine(4);
  machine.set_clock(1'000'000'000);
  auto object = runtime::Object::open(dwell_native_short_packets).value();
  object->variable<uint32_t>("shortest") = 10;
  ASSERT_TRUE(object->load(machine));
  auto events = UserEventArray::open(object->map<runtime::EventMap>("events").events()).value();

  // One packet passes, one is too short.
  runtime::Program& program = object->program("drop_short");
  const std::vector<std::byte> bytes(10, std::byte{7});
  auto packet = runtime::Packet::create(bytes).value();
  auto runt = runtime::Packet::create(std::span(bytes).first(5)).value();
  EXPECT_EQ(program.run(/*cpu=*/0, *packet).value, XDP_PASS);
  EXPECT_EQ(program.run(/*cpu=*/3, *runt).value, XDP_DROP);

  // The event is in the ring of CPU 3, with the packet behind it.
  uint64_t seen = 0;
  events->drain({}, [&](uint32_t cpu, const Record& record) {
    Sample sample;
    ASSERT_EQ(decode_sample(events->format(), record, sample), SampleCheck::kOk);
    EXPECT_EQ(cpu, 3u);
    EXPECT_EQ(payload_as<uint64_t>(sample), 1'000'000'000u);
    EXPECT_EQ(sample.payload.size(), 16u + 5u);
    EXPECT_EQ(sample.payload.back(), std::byte{7});
    ++seen;
  });
  EXPECT_EQ(seen, 1u);
}
