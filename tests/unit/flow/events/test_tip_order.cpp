// TIPs that give their time to their branches: those of a stream without deferred TIPs.
#include <gtest/gtest.h>

#include "unit/support/traces/scene.h"

namespace ptkit::flow {
namespace {

constexpr std::size_t kAgain = 8;  // TIPs in a row, after one that was deferred

// 1000 jz 1000; 1002 jmp rax
const std::vector<std::uint8_t> kLoop{0x74, 0xfe, 0xff, 0xe0};
// 1000 jz 1000; 1002 ret
const std::vector<std::uint8_t> kReturns{0x74, 0xfe, 0xc3};

class Loop : public Scene {
 public:
  explicit Loop(const std::vector<std::uint8_t>& code = kLoop) : Scene(code) { begin(); }
  // A conditional branch that is not taken, and the branch after it.
  void once() { tnt("n").tip(kCode); }
  template <typename Between>
  void once(Between between) {
    between();
    tnt("n");
    between();
    tip(kCode);
  }
};

// For each branch with a TIP: true if the branch has the time of that packet.
std::vector<bool> exact(Scene& scene) {
  scene.end(Scene::kCode);
  const Collect rows = scene.decode();
  EXPECT_TRUE(rows.errors.empty()) << rows.log;
  std::vector<bool> out;
  for (const Branch& branch : rows.branches) {
    if (branch.kind == BranchKind::COND) continue;
    out.push_back(branch.span.since == branch.span.offset);
  }
  out.pop_back();  // the interrupt at the end
  return out;
}

std::vector<bool> after(std::size_t count, std::size_t of) {
  std::vector<bool> out(of, true);
  std::fill_n(out.begin(), std::min(count, of), false);
  return out;
}

TEST(TipOrder, IsProvedByTipBetweenTntPackets) {
  Loop scene;
  for (unsigned i = 0; i < 4; ++i) scene.once();
  EXPECT_EQ(exact(scene), after(1, 4));
}

TEST(TipOrder, IsProvedAmongCycPackets) {
  Loop scene;
  for (unsigned i = 0; i < 12; ++i)
    scene.once([&] { scene.add(PacketKind::CYC, 5).add(PacketKind::PAD, 1); });
  EXPECT_EQ(exact(scene), after(1, 12));
}

// A processor that defers TIPs may write them out before another packet.
TEST(TipOrder, IsNotProvedBeforeOtherPackets) {
  for (const PacketKind kind : {PacketKind::MTC, PacketKind::TSC, PacketKind::CBR}) {
    Loop scene;
    for (unsigned i = 0; i < 12; ++i) scene.once([&] { scene.add(kind, 3); });
    EXPECT_EQ(exact(scene), after(12, 12)) << static_cast<int>(kind);
  }
}

TEST(TipOrder, IsNotProvedByReturns) {
  Loop scene(kReturns);
  for (unsigned i = 0; i < 12; ++i) scene.once();
  EXPECT_EQ(exact(scene), after(12, 12));
}

// The last of several may be the one too many to be kept.
TEST(TipOrder, IsNotProvedBySeveralTipsOfOneTnt) {
  Scene scene({0x74, 0x02, 0xff, 0xe0, 0xff, 0xe0});  // 1000 jz 1004; 1002 jmp rax; 1004 jmp rax
  scene.begin();
  for (unsigned i = 0; i < 12; ++i) scene.tnt("n").tip(0x1004).tip(Scene::kCode);
  EXPECT_EQ(exact(scene), after(24, 24));
}

TEST(TipOrder, IsNotProvedByFullTntPackets) {
  Loop scene;
  for (unsigned i = 0; i < 12; ++i) scene.tnt("tttttn").tip(Scene::kCode);
  EXPECT_EQ(exact(scene), after(12, 12));
}

TEST(TipOrder, IsProvedByLongTntPackets) {
  Loop scene;
  for (unsigned i = 0; i < 12; ++i) scene.tnt("ttttttn").tip(Scene::kCode);
  EXPECT_EQ(exact(scene), after(1, 12));
}

TEST(TipOrder, IsDisprovedByDeferredTip) {
  Loop scene;
  scene.tnt("nn").tip(Scene::kCode).tip(Scene::kCode);
  for (unsigned i = 0; i < 12; ++i) scene.once();
  EXPECT_EQ(exact(scene), after(2 + kAgain, 2 + 12));
}

// Partial TNT packets "may be generated at any time": also by a processor that defers TIPs.
TEST(TipOrder, IsDisprovedAfterProof) {
  Loop scene;
  for (unsigned i = 0; i < 3; ++i) scene.once();
  scene.tnt("nn").tip(Scene::kCode).tip(Scene::kCode);
  for (std::size_t i = 0; i + 1 < kAgain; ++i) scene.once();
  scene.tnt("nn").tip(Scene::kCode).tip(Scene::kCode);
  for (unsigned i = 0; i < 10; ++i) scene.once();
  const std::size_t doubted = 2 + (kAgain - 1) + 2 + kAgain;
  std::vector<bool> expected = after(0, 3 + 2 + (kAgain - 1) + 2 + 10);
  expected[0] = false;
  std::fill_n(expected.begin() + 3, doubted, false);
  EXPECT_EQ(exact(scene), expected);
}

// A TIP that no bits come before was not deferred.
TEST(TipOrder, IsIrrelevantWithoutTntBits) {
  Scene scene({0xff, 0xe0});
  scene.begin().tip(Scene::kCode).tip(Scene::kCode);
  EXPECT_EQ(exact(scene), after(0, 2));
}

TEST(TipOrder, BranchesAreAsOldAsTheirTntPacket) {
  Loop scene(kReturns);
  scene.once();
  const std::uint64_t first = scene.last;
  scene.tnt("n");
  const std::uint64_t tnt = scene.last;
  scene.tip(Scene::kCode);
  const std::uint64_t second = scene.last;
  const Collect rows = scene.end(Scene::kCode).decode();
  ASSERT_EQ(rows.branches.size(), 5U);  // with the interrupt
  EXPECT_LT(rows.branches[1].span.since, first - 1);
  EXPECT_EQ(rows.branches[1].span.offset, first);
  // Rows after the TIPs of a TNT packet are younger than that packet.
  EXPECT_EQ(rows.branches[2].span.since, first);
  EXPECT_EQ(rows.branches[2].span.offset, tnt);
  EXPECT_EQ(rows.branches[3].span.since, first);
  EXPECT_EQ(rows.branches[3].span.offset, second);
}

}  // namespace
}  // namespace ptkit::flow
