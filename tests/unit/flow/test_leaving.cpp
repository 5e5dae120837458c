// Where a trace ends by TIP.PGD without IP: at the MOV CR3 that left the context, or at a far transfer. A MOV
// CR3 that stays in the context has a PIP, one that leaves it has none (manual: "Packet Generation Under
// Different Enable Conditions", MOV to CR3).
#include <gtest/gtest.h>

#include "scene.h"

namespace ptkit::flow {
namespace {

// 1000 mov cr3, rax; 1003 nop; 1004 mov cr3, rax; 1007 nop; 1008 sysret
const std::vector<std::uint8_t> kCode = {0x0f, 0x22, 0xd8, 0x90, 0x0f, 0x22, 0xd8, 0x90, 0x48, 0x0f, 0x07};

TEST(Leaving, AMovCr3WithoutPipLeaves) {
  const Collect rows = Scene(kCode).begin().pgd().decode();
  EXPECT_EQ(rows.ips, (Ips{0x1000}));
  EXPECT_TRUE(rows.errors.empty());
}

TEST(Leaving, AMovCr3WithPipStays) {
  const Collect rows = Scene(kCode).begin().add(PacketKind::PIP, 0x5000).pgd().decode();
  EXPECT_EQ(rows.ips, (Ips{0x1000, 0x1003, 0x1004}));
  EXPECT_TRUE(rows.errors.empty());
}

TEST(Leaving, AFarTransferLeavesBehindThem) {
  const Collect rows =
      Scene(kCode).begin().add(PacketKind::PIP, 0x5000).add(PacketKind::PIP, 0x6000).pgd().decode();
  EXPECT_EQ(rows.ips, (Ips{0x1000, 0x1003, 0x1004, 0x1007, 0x1008}));
  EXPECT_TRUE(rows.errors.empty());
  ASSERT_EQ(rows.branches.size(), 1U);
  EXPECT_EQ(rows.branches[0].from_ip, 0x1008U);
  EXPECT_EQ(rows.branches[0].kind, BranchKind::SYSRET);
}

}  // namespace
}  // namespace ptkit::flow
