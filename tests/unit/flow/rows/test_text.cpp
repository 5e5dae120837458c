#include <gtest/gtest.h>

#include "flow/rows/text.h"

namespace ptkit::flow {
namespace {

std::string text_of(EventKind kind, std::uint64_t payload = 0, std::uint16_t flags = 0,
                    std::uint64_t payload2 = 0, std::uint64_t payload3 = 0) {
  Event row{};
  row.kind = kind;
  row.flags = flags;
  row.payload = payload;
  row.payload2 = payload2;
  row.payload3 = payload3;
  return event_text(row);
}

TEST(EventText, KindsWithoutPayloadHaveTheirNames) {
  EXPECT_EQ(text_of(EventKind::DISABLED), "disabled");
  EXPECT_EQ(text_of(EventKind::OVERFLOW), "overflow");
  EXPECT_EQ(text_of(EventKind::TICK), "tick");
  EXPECT_EQ(text_of(EventKind::IRET), "iret");
  EXPECT_EQ(text_of(EventKind::SMI), "smi");
  EXPECT_EQ(text_of(EventKind::INIT), "init");
  EXPECT_EQ(text_of(EventKind::UIRET), "uiret");
  EXPECT_EQ(text_of(EventKind::PEBS_END), "pebs end");
  EXPECT_EQ(text_of(static_cast<EventKind>(0xff)), "");  // of a damaged row
}

TEST(EventText, PayloadsFollowTheKind) {
  EXPECT_EQ(text_of(EventKind::ENABLED), "enabled");
  EXPECT_EQ(text_of(EventKind::ENABLED, 0, EV_RESUMED), "resumed");
  EXPECT_EQ(text_of(EventKind::PAGING, 0xafafa0, EV_NON_ROOT), "paging, cr3: 0000000000afafa0, nr");
  EXPECT_EQ(text_of(EventKind::EXEC_MODE, 64), "exec mode: 64-bit");
  EXPECT_EQ(text_of(EventKind::IFLAG, 1), "interrupts enabled");
  EXPECT_EQ(text_of(EventKind::INTERRUPT, 14, EV_CR2_KNOWN, 0x1000), "interrupt 14, cr2: 0000000000001000");
  EXPECT_EQ(text_of(EventKind::VMEXIT, 2, EV_PAYLOAD_KNOWN | EV_CR2_KNOWN | EV_QUALIFICATION_KNOWN, 3, 4),
            "vmexit, intr: 2, vmxr: 0000000000000003, vmxq: 0000000000000004");
  EXPECT_EQ(text_of(EventKind::TRIG, 5, EV_MULT), "trig 05, mult");
  EXPECT_EQ(text_of(EventKind::PWRE, 0x21, EV_HW), "pwre c3.2 hw");
  EXPECT_EQ(text_of(EventKind::PWRX, 0x21, 0, 5), "pwrx int: st: c3 (c2)");
}

}  // namespace
}  // namespace ptkit::flow
