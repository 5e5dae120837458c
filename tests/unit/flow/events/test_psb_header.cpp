// Reads PSB+ that repeat known state.
#include <gtest/gtest.h>

#include "flow/events/psb_header.h"
#include "unit/support/traces/scene.h"

namespace ptkit::flow {
namespace {

struct Read {
  bool plain = false;
  PsbHeader header;
};

// The bytes of the scene from `at` on, and zeros.
Read read(const Scene& scene, const PsbKnown& known, std::size_t at = 0) {
  std::vector<std::uint8_t> bytes = scene.bytes();
  const std::size_t end = bytes.size();
  bytes.resize(end + 16);
  Read out;
  out.plain = read_psb(bytes.data() + at, bytes.data() + end, known, out.header);
  return out;
}

PsbKnown known_64() {
  PsbKnown known;
  known.any = true;
  known.mode = 1;
  return known;
}

TEST(PsbHeader, HasIp) {
  Scene scene;
  scene.psb().mode(64).add(PacketKind::CBR, 30).fup(0xffff800000001234).psbend().tnt("t");
  const Read on = read(scene, known_64());
  ASSERT_TRUE(on.plain);
  EXPECT_TRUE(on.header.on);
  EXPECT_EQ(on.header.ip, 0xffff800000001234);
  EXPECT_EQ(on.header.events, 3U);  // status, mode, CBR
}

TEST(PsbHeader, PacketsAreDisabled) {
  Scene scene;
  scene.psb().mode(64).psbend().pge(0x1000);
  const Read off = read(scene, known_64());
  ASSERT_TRUE(off.plain);
  EXPECT_FALSE(off.header.on);
}

TEST(PsbHeader, RejectsNewState) {
  const auto plain = [](const PsbKnown& known, auto&& put) {
    Scene scene;
    scene.psb();
    put(scene);
    scene.fup(0x1000).psbend().tnt("t");
    return read(scene, known).plain;
  };
  const auto nothing = [](Scene&) {};
  EXPECT_TRUE(plain(known_64(), nothing));
  EXPECT_FALSE(plain(PsbKnown{}, nothing));
  EXPECT_TRUE(plain(known_64(), [](Scene& scene) { scene.mode(64); }));
  EXPECT_FALSE(plain(known_64(), [](Scene& scene) { scene.mode(32); }));
  EXPECT_FALSE(plain(known_64(), [](Scene& scene) { scene.mode(64, true); }));
  EXPECT_TRUE(plain(known_64(), [](Scene& scene) { scene.add(PacketKind::MODE_TSX, 0); }));
  EXPECT_FALSE(plain(known_64(), [](Scene& scene) { scene.add(PacketKind::MODE_TSX, 1); }));
  EXPECT_FALSE(plain(known_64(), [](Scene& scene) { scene.add(PacketKind::PIP, 0x3000); }));
  EXPECT_FALSE(plain(known_64(), [](Scene& scene) { scene.fup(0x2000); }));
  EXPECT_FALSE(plain(known_64(), [](Scene& scene) { scene.ovf(); }));
  EXPECT_FALSE(plain(known_64(), [](Scene& scene) { scene.tnt("t"); }));
}

TEST(PsbHeader, AcceptsKnownPip) {
  Scene scene;
  scene.psb().add(PacketKind::PIP, 0x3000);
  const std::size_t pip = static_cast<std::size_t>(scene.last);
  scene.psbend();
  const std::vector<std::uint8_t> bytes = scene.bytes();
  PsbKnown known = known_64();
  known.pip = bytes.data() + pip;
  EXPECT_TRUE(read(scene, known).plain);
  Scene other;
  other.psb().add(PacketKind::PIP, 0x4000).psbend();
  EXPECT_FALSE(read(other, known).plain);
}

// Erratum BDM70
TEST(PsbHeader, PacketsAreDisabledBeforeTipPge) {
  for (const bool timing : {false, true}) {
    Scene scene;
    scene.psb().mode(64).fup(0x1000).psbend().raw({0, 0});
    if (timing) scene.add(PacketKind::MTC, 7);
    EXPECT_FALSE(read(scene, known_64()).plain);
    scene.pge(0x1000);
    const Read off = read(scene, known_64());
    ASSERT_TRUE(off.plain);
    EXPECT_FALSE(off.header.on);
    EXPECT_EQ(off.header.ip, 0x1000U);
  }
}

TEST(PsbHeader, KnowsRepeatedMode) {
  const auto repeats = [](const PsbKnown& known, auto&& put) {
    Scene scene;
    put(scene);
    return repeats_exec_mode(scene.bytes().data(), known);
  };
  EXPECT_TRUE(repeats(known_64(), [](Scene& scene) { scene.mode(64); }));
  EXPECT_FALSE(repeats(PsbKnown{.mode = 1}, [](Scene& scene) { scene.mode(64); }));
  EXPECT_FALSE(repeats(known_64(), [](Scene& scene) { scene.mode(32); }));
  EXPECT_FALSE(repeats(known_64(), [](Scene& scene) { scene.mode(64, true); }));
  EXPECT_FALSE(repeats(known_64(), [](Scene& scene) { scene.add(PacketKind::MODE_TSX, 1); }));
  EXPECT_FALSE(repeats(known_64(), [](Scene& scene) { scene.psbend(); }));
}

TEST(PsbHeader, ReadsWithinStream) {
  Scene scene;
  scene.psb().mode(64).add(PacketKind::TSC, 77).fup(0x1000).psbend().tnt("t");
  const std::vector<std::uint8_t>& bytes = scene.bytes();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    std::vector<std::uint8_t> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    cut.resize(size + 16);
    PsbHeader header;
    EXPECT_FALSE(read_psb(cut.data(), cut.data() + size, known_64(), header)) << size;
  }
}

}  // namespace
}  // namespace ptkit::flow
