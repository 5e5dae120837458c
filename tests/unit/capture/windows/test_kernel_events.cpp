#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "capture/windows/kernel_events.h"
#include "unit/capture/windows/fake_events.h"

namespace ptkit::capture {
namespace {

using namespace test;
using Kind = KernelEvent::Kind;

TEST(KernelEvents, ReadsAContextSwitch) {
  const std::vector<std::uint8_t> payload = switch_payload(0x1234, 0xfffffffe);
  KernelEvent event;
  ASSERT_EQ(parse_event(raw_event(kThreadGuid, 36, 7, 900, payload), event), ParsedEvent::KNOWN);
  EXPECT_EQ(event.kind, Kind::SWITCH);
  EXPECT_EQ(event.cpu, 7U);
  EXPECT_EQ(event.tsc, 900U);
  EXPECT_EQ(event.old_tid, 0x1234);
  EXPECT_EQ(event.tid, 0xfffffffeLL);
}

TEST(KernelEvents, ReadsThreadsThatBeginAndThoseThatWereThere) {
  for (const std::uint8_t opcode : {std::uint8_t{1}, std::uint8_t{3}}) {
    const std::vector<std::uint8_t> payload = thread_payload(4711, 99);
    KernelEvent event;
    ASSERT_EQ(parse_event(raw_event(kThreadGuid, opcode, 0, 5, payload), event), ParsedEvent::KNOWN);
    EXPECT_EQ(event.kind, Kind::THREAD);
    EXPECT_EQ(event.pid, 4711);
    EXPECT_EQ(event.tid, 99);
  }
}

TEST(KernelEvents, ReadsAnUnloadedImage) {
  const std::vector<std::uint8_t> payload = unload_payload(0x7ffe12340000, 0x5000, 4711);
  KernelEvent event;
  ASSERT_EQ(parse_event(raw_event(kImageGuid, 2, 1, 5, payload), event), ParsedEvent::KNOWN);
  EXPECT_EQ(event.kind, Kind::UNLOAD);
  EXPECT_EQ(event.address, 0x7ffe12340000U);
  EXPECT_EQ(event.bytes, 0x5000U);
  EXPECT_EQ(event.pid, 4711);
}

TEST(KernelEvents, ReadsEachKindOfLoss) {
  for (std::uint8_t opcode = 32; opcode <= 34; ++opcode) {
    KernelEvent event;
    EXPECT_EQ(parse_event(raw_event(kLossGuid, opcode, 0, 77, {}), event), ParsedEvent::KNOWN);
    EXPECT_EQ(event.kind, Kind::LOSS);
    EXPECT_EQ(event.tsc, 77U);
  }
}

TEST(KernelEvents, RejectsEachTruncatedPayload) {
  struct Case {
    Guid provider;
    std::uint8_t opcode;
    std::vector<std::uint8_t> payload;
    std::size_t needed;
  };
  const std::vector<Case> cases{{kThreadGuid, 36, switch_payload(1, 2), 24},
                                {kThreadGuid, 1, thread_payload(1, 2), 8},
                                {kImageGuid, 2, unload_payload(0x1000, 0x1000, 1), 56}};
  for (const Case& one : cases) {
    for (std::size_t size = 0; size <= one.payload.size(); ++size) {
      KernelEvent event;
      const base::Bytes part = base::Bytes(one.payload).first(size);
      EXPECT_EQ(parse_event(raw_event(one.provider, one.opcode, 0, 1, part), event),
                size < one.needed ? ParsedEvent::MALFORMED : ParsedEvent::KNOWN)
          << "opcode " << int{one.opcode} << ", " << size << " bytes";
    }
  }
}

TEST(KernelEvents, RejectsOtherLayouts) {
  const std::vector<std::uint8_t> image = unload_payload(0x1000, 0x1000, 1);
  KernelEvent event;
  RawEvent raw = raw_event(kImageGuid, 2, 0, 1, image);
  raw.has_64_bit_pointers = false;
  EXPECT_EQ(parse_event(raw, event), ParsedEvent::MALFORMED);
  const std::vector<std::uint8_t> change = switch_payload(1, 2);
  raw = raw_event(kThreadGuid, 36, 0, 1, change);
  raw.version = 1;
  EXPECT_EQ(parse_event(raw, event), ParsedEvent::MALFORMED);
  for (const std::uint64_t bytes : {std::uint64_t{0}, ~std::uint64_t{0}}) {
    const std::vector<std::uint8_t> odd = unload_payload(0x1000, bytes, 1);
    EXPECT_EQ(parse_event(raw_event(kImageGuid, 2, 0, 1, odd), event), ParsedEvent::MALFORMED);
  }
}

TEST(KernelEvents, LeavesOutOtherEvents) {
  const std::vector<std::uint8_t> payload(64, 0xff);
  KernelEvent event;
  EXPECT_EQ(parse_event(raw_event(kThreadGuid, 2, 0, 1, payload), event), ParsedEvent::OTHER);  // an end
  EXPECT_EQ(parse_event(raw_event(kImageGuid, 10, 0, 1, payload), event), ParsedEvent::OTHER);  // a load
  EXPECT_EQ(parse_event(raw_event(kLossGuid, 31, 0, 1, payload), event), ParsedEvent::OTHER);
  EXPECT_EQ(parse_event(raw_event(Guid{}, 36, 0, 1, payload), event), ParsedEvent::OTHER);
}

}  // namespace
}  // namespace ptkit::capture
