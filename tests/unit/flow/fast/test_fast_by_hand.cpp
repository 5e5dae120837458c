// The fast path at limits of the path cache, and at packets that the random walks rarely have.
#include <gtest/gtest.h>

#include <random>

#include "unit/flow/fast/same_rows.h"
#include "unit/support/traces/scene.h"

namespace ptkit::flow {
namespace {

using decoded::Reading;
using tables::columns::TableId;

// The scene's stream `times` times, so that path caches are warm, and far from the end of the stream.
void expect_same(Scene& scene, unsigned times = 3) {
  scene.raw(std::vector<std::uint8_t>(32, 0));
  const auto bundle = std::make_shared<trace::TraceBundle>(scene.bundle());
  bundle->configuration = scene.configuration;
  for (unsigned i = 0; i < times; ++i) {
    trace::Stream stream = scene.stream();
    stream.data = trace::TraceBuffer::from_vector(scene.bytes());
    bundle->streams.push_back(stream);
  }
  for (const Resync resync : {Resync::IP, Resync::PSB}) {
    FlowOptions options = scene.options;
    options.resync = resync;
    expect_same(bundle, options);
    Reading parts;
    parts.part = 7;
    expect_same(bundle, options, parts);
  }
}

// 1000: `jz 1008; call 1000; nop; ret`
const std::vector<std::uint8_t> kRecursion = {0x74, 0x06, 0xe8, 0xf9, 0xff, 0xff, 0xff, 0x90, 0xc3};

TEST(FastByHand, RecursionDeeperThanTheCallStack) {
  for (const unsigned depth : {1U, 5U, 31U, 32U, 33U, 63U, 64U, 65U, 66U, 100U, 200U}) {
    SCOPED_TRACE(depth);
    for (const unsigned first : {1U, 2U, 5U}) {
      Scene scene(kRecursion);
      scene.begin().tnt(&"nnnnn"[5 - first]);
      for (unsigned i = first; i < depth; ++i) scene.tnt("n");
      for (unsigned i = 0; i < depth + 3; i += first) scene.tnt(&"ttttt"[5 - first]);
      scene.tip(Scene::kCode).tnt("nt").tip(Scene::kCode);
      expect_same(scene);
    }
  }
}

TEST(FastByHand, LongTntOfShortPaths) {
  for (const char* bits :
       {"nnnnnnn", "tntntntntntn", "nnnnnnnnnnnnttttttttttttt", "nnnnnnnttttttttttttttttttttttttttttttttt"}) {
    Scene scene(kRecursion);
    scene.begin().tnt(bits).tnt("n").tnt(bits).tip(Scene::kCode).tnt(bits).pgd().pge(Scene::kCode).tnt(bits);
    expect_same(scene);
  }
}

TEST(FastByHand, LongTntOfManyInstructions) {
  // 1000: `jz 1003; ret; call 1000`, much straight code, `ret`
  for (const std::size_t nops : {10U, 250U, 900U}) {
    std::vector<std::uint8_t> code{0x74, 0x01, 0xc3, 0xe8, 0xf8, 0xff, 0xff, 0xff};
    code.insert(code.end(), nops, 0x90);
    code.push_back(0xc3);
    Scene scene(code);
    const std::string calls(47, 't');
    const std::string returns = "n" + std::string(45, 't');
    scene.begin().tnt(calls.c_str()).tnt(returns.c_str()).tnt("t").tip(Scene::kCode);
    scene.tnt(calls.c_str()).tnt(returns.c_str()).tnt(calls.c_str());
    expect_same(scene);
  }
}

// `jz 1000; jz 1000; mov cr3, rax; mov cr3, rax`. After them is code of the other process, which was replaced
// while this process ran. The visible version depends on the last packet after a timing packet.
TEST(FastByHand, CodeOfOtherProcessChanged) {
  constexpr std::uint64_t kCr3 = 0x1000;
  constexpr std::uint64_t kOther = Scene::kCode + 10;
  const auto many = [](Scene& scene) {
    for (unsigned i = 0; i < 200; ++i) scene.tnt("nt");
  };
  enum class Time { EARLIER, BEFORE, BETWEEN };
  for (const Time time : {Time::EARLIER, Time::BEFORE, Time::BETWEEN}) {
    Scene scene({0x74, 0xfe, 0x74, 0xfc, 0x0f, 0x22, 0xd8, 0x0f, 0x22, 0xd8});
    scene.put(kOther, {0x74, 0xfe}, trace::kTscMin, 1000, 1);
    scene.put(kOther, {0x90, 0x74, 0xfe}, 1000, trace::kTscMax, 1);
    scene.bundle().spaces = {{7, kCr3, true}, {8, kCr3 * 2, true}};
    scene.with_time = true;
    scene.configuration.clock.max_nonturbo_ratio = 20;
    scene.psb().add(PacketKind::TSC, 500).add(PacketKind::CBR, 20).add(PacketKind::PIP, kCr3);
    scene.mode(64).fup(Scene::kCode).psbend().tnt("t");
    many(scene.add(PacketKind::TSC, 600));
    many(scene.add(PacketKind::CYC, 1000));
    if (time == Time::EARLIER) many(scene.add(PacketKind::CYC, 1000));
    scene.tnt("nn");
    if (time == Time::BEFORE) scene.add(PacketKind::CYC, 1000);
    scene.add(PacketKind::PIP, kCr3);
    if (time == Time::BETWEEN) scene.add(PacketKind::CYC, 1000);
    scene.add(PacketKind::PIP, kCr3 * 2).tnt("ttt").raw(std::vector<std::uint8_t>(64, 0));
    scene.add(PacketKind::TSC, 2700).tnt("t");
    expect_same(scene);
    const Collect rows = scene.decode();
    EXPECT_EQ(rows.errors.size(), 0);
    EXPECT_EQ(rows.branches.back().from_ip, kOther + 1);
  }
}

// `jz 1000; jmp rax; jz 1004; ret`: sequences that prove TipOrder, and others.
TEST(FastByHand, DeferredTips) {
  constexpr std::uint64_t kReturn = Scene::kCode + 4;
  for (std::uint64_t seed = 1; seed <= seeds(60); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    Scene scene({0x74, 0xfe, 0xff, 0xe0, 0x74, 0xfe, 0xc3});
    scene.configuration.clock.max_nonturbo_ratio = 20;
    scene.psb().add(PacketKind::TSC, 500).add(PacketKind::CBR, 20).mode(64).fup(Scene::kCode).psbend();
    std::uint64_t tsc = 1000;
    for (unsigned i = 0; i < 60; ++i) {
      const unsigned bits = 1 + static_cast<unsigned>(random() % (random() % 8 == 0 ? 47 : 3));
      scene.add(PacketKind::CYC, 1 + random() % 300).tnt((std::string(bits - 1, 't') + "n").c_str());
      if (random() % 8 == 0) scene.add(PacketKind::PAD, 1);
      const bool to_return = random() % 8 == 0;
      scene.add(PacketKind::CYC, 1 + random() % 300).tip(to_return ? kReturn : Scene::kCode);
      if (random() % 8 == 0) scene.add(PacketKind::TSC, tsc += 10000);
      if (to_return) scene.tnt("n").tip(Scene::kCode);
      if (random() % 32 == 0) scene.tnt("nn").tip(Scene::kCode).tip(Scene::kCode);
    }
    scene.add(PacketKind::TSC, tsc + 10000);
    expect_same(scene);
    EXPECT_TRUE(scene.decode().errors.empty());
    if (HasFailure()) return;
  }
}

// `jz 1000; call 1009; jmp 1000; ret`: some encoders compress a return to a call before the PSB.
TEST(FastByHand, ReturnsOverPsb) {
  Scene scene({0x74, 0xfe, 0xe8, 0x02, 0x00, 0x00, 0x00, 0xeb, 0xf7, 0xc3});
  scene.begin();
  for (unsigned i = 0; i < 40; ++i) {
    scene.tnt("tttttn").psb().mode(64).fup(Scene::kCode + 9).psbend().tnt("t").tnt("tttttt");
  }
  expect_same(scene);
  EXPECT_TRUE(scene.decode().errors.empty());
}

TEST(FastByHand, ReturnsWithoutCalls) {
  Scene scene(kRecursion);
  scene.begin().tnt("tt").tip(Scene::kCode).tnt("t").tip(Scene::kCode + 8).tip(Scene::kCode).tnt("tnt");
  expect_same(scene);
}

TEST(FastByHand, MissingCode) {
  // 1000: `jz 1004; nop; nop; jz 1009; call rax; nop`, and nothing more.
  Scene scene({0x74, 0x02, 0x90, 0x90, 0x74, 0x03, 0xff, 0xd0, 0x90});
  scene.begin();
  for (const char* bits : {"tn", "nn", "t", "tt", "ttt", "nnnnnn", "nt"}) scene.tnt(bits).tip(Scene::kCode);
  scene.tip(0x9000).tnt("t").tip(Scene::kCode).pgd(0x9000).pge(Scene::kCode + 8).pgd().pge(Scene::kCode);
  expect_same(scene);
}

TEST(FastByHand, LoopsWithoutPackets) {
  // 1000: `jz 1006; jmp 1000+2; jmp 1006+1: nop; jmp 1008`
  Scene scene({0x74, 0x04, 0xeb, 0xfe, 0x90, 0x90, 0x90, 0x90, 0xeb, 0xfe});
  scene.begin().tnt("t").tip(Scene::kCode).tnt("n").tnt("nt").pgd().pge(Scene::kCode).tnt("tn");
  scene.pgd(Scene::kCode + 2)
      .pge(Scene::kCode)
      .tnt("n")
      .pgd(Scene::kCode + 2)
      .pge(Scene::kCode)
      .tip(Scene::kCode);
  expect_same(scene);
}

// A conditional, then so much straight code that no path is long enough for it.
std::vector<std::uint8_t> long_code(std::size_t nops) {
  std::vector<std::uint8_t> code{0x74, 0x00};
  code.insert(code.end(), nops, 0x90);
  code.insert(code.end(), {0x74, 0x00, 0xff, 0xe0});
  return code;
}

TEST(FastByHand, LongPaths) {
  for (const std::size_t nops : {500U, 511U, 512U, 1000U, 1020U, 1021U, 1022U, 1023U, 1024U, 1025U, 5000U}) {
    SCOPED_TRACE(nops);
    Scene scene(long_code(nops));
    scene.begin();
    for (const char* bits : {"t", "tn", "tnt", "nnnnnn"}) scene.tnt(bits).tip(Scene::kCode);
    scene.tnt("n")
        .pgd(Scene::kCode + 100)
        .pge(Scene::kCode + 3)
        .pgd()
        .pge(Scene::kCode)
        .tnt("nn")
        .tip(0x1001);
    expect_same(scene);
  }
}

// Many short blocks: jumps to the next instruction.
TEST(FastByHand, ManyBlocks) {
  for (const std::size_t jumps : {250U, 254U, 255U, 256U, 257U, 300U}) {
    SCOPED_TRACE(jumps);
    std::vector<std::uint8_t> code;
    for (std::size_t i = 0; i < jumps; ++i) code.insert(code.end(), {0xeb, 0x00});
    code.insert(code.end(), {0x74, 0x00, 0xff, 0xe0});
    Scene scene(code);
    scene.begin().tnt("t").tip(Scene::kCode).tnt("nt").tip(Scene::kCode).pgd().pge(Scene::kCode).pgd(0x1010);
    expect_same(scene);
  }
}

TEST(FastByHand, MovCr3AndFiltersAtTipPgd) {
  // 1000: `jz 1004; nop; nop; mov cr3, rax; jmp 1010`
  Scene scene({0x74, 0x02, 0x90, 0x90, 0x0f, 0x22, 0xd8, 0xeb, 0x07});
  scene.configuration.ranges[0] = {trace::RangeKind::FILTER, Scene::kCode, Scene::kCode + 8};
  scene.put(0x1010, {0x74, 0x02, 0x90, 0xc3, 0xc3});
  scene.begin()
      .tnt("t")
      .pgd()
      .pge(Scene::kCode)
      .pgd()
      .pge(Scene::kCode + 7)
      .pgd()
      .pge(Scene::kCode + 2)
      .pgd(0x1004);
  scene.pge(0x1010).pgd().pge(0x1010).tnt("n").pgd(0x1000).pge(0x1000).tnt("nt").tip(0x1000);
  expect_same(scene);
}

// More code than a cache may hold: it is cleared, and its paths with it.
// A PSB+ empties the stack that RETs which come as a TIP pop, and no other.
TEST(FastByHand, PsbEmptiesCallStack) {
  // 1000: `call 1010; jmp rax`; 1010: `call 1020; jz 1017; ret`; 1020: `jz 1022; ret`
  Scene scene({0xe8, 0x0b, 0x00, 0x00, 0x00, 0xff, 0xe0});
  scene.put(0x1010, {0xe8, 0x0b, 0x00, 0x00, 0x00, 0x74, 0x00, 0xc3});
  scene.put(0x1020, {0x74, 0x00, 0xc3});
  for (unsigned i = 0; i < 3; ++i) {
    scene.begin().tnt("n").tip(0x1015).psb().mode(64).fup(0x1015).psbend().tnt("nt").tnt("nt");
    scene.tip(Scene::kCode).tnt("n").tip(0x1015).tnt("nt").tip(Scene::kCode);
  }
  expect_same(scene);
}

// State packets of a PSB+, most of them those of the one before.
void put_state(Scene& scene, std::mt19937& random, std::uint64_t cr3) {
  const auto one_in = [&](unsigned n) { return random() % n == 0; };
  if (one_in(2)) scene.add(PacketKind::TSC, 0x100000 + scene.bytes().size());
  if (!one_in(8))
    scene.add(PacketKind::PIP, one_in(12) ? 0x7000 : cr3, 0, one_in(12) ? packet::Packet::NR : 0);
  if (one_in(3)) scene.add(PacketKind::VMCS, 0x5000);
  if (!one_in(10)) scene.mode(one_in(12) ? 32 : 64, one_in(12));
  if (one_in(4)) scene.add(PacketKind::MODE_TSX, one_in(4) ? random() % 3 : 0);
  if (one_in(3)) scene.add(PacketKind::CBR, random() % 40);
  if (one_in(4)) scene.raw({0, 0, 0});
  if (one_in(20)) scene.raw({0x02, 0xc3, 0x88, 1, 2, 3, 4, 5, 6, 7, 8});  // MNT
  if (one_in(40)) scene.ovf();
}

TEST(FastByHand, PsbWithKnownAndNewState) {
  // 1000: `nop; nop; jmp 1006; nop; nop; nop; jz 1000; jmp rax`
  const std::vector<std::uint8_t> code{0x90, 0x90, 0xeb, 0x02, 0x90, 0x90, 0x90, 0x74, 0xf7, 0xff, 0xe0};
  for (unsigned seed = 0; seed < seeds(60); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    Scene scene(code);
    bool on = true;
    scene.psb().mode(64).add(PacketKind::PIP, 0x3000).fup(Scene::kCode).psbend();
    for (unsigned i = 0; i < 30; ++i) {
      const std::uint64_t ip = Scene::kCode + std::array{0U, 0U, 1U, 6U, 7U, 4U, 9U}[random() % 7];
      if (on && random() % 2 == 0) scene.tnt(random() % 2 == 0 ? "t" : "ttt");
      scene.psb();
      put_state(scene, random, 0x3000);
      if (random() % 12 == 0 ? !on : on) scene.fup(ip);
      scene.psbend();
      if (random() % 15 == 0) scene.add(PacketKind::PIP, 0x3000);
      switch (on ? random() % 8 : random() % 2) {
        case 0:
          on = true;
          scene.pge(Scene::kCode);
          break;
        case 1:
          if (on) scene.pgd();
          on = false;
          break;
        case 2:
          scene.tnt("n").tip(Scene::kCode);
          break;
        default:
          scene.tnt("tt");
          break;
      }
    }
    expect_same(scene);
  }
}

// Packets while packets are disabled, most of them with known state, up to the next TIP.PGE.
void put_while_off(Scene& scene, std::mt19937& random, std::uint64_t ip) {
  const auto one_in = [&](unsigned n) { return random() % n == 0; };
  if (one_in(2)) {
    scene.psb();
    if (one_in(2)) scene.mode(64).fup(ip);  // erratum BDM70
    scene.add(PacketKind::CBR, 30).psbend();
  }
  if (one_in(2)) scene.mode(one_in(12) ? 32 : 64, one_in(12));
  if (one_in(3)) scene.raw({0, 0, 0});
  if (one_in(20)) scene.add(PacketKind::CBR, 30);
  if (one_in(20)) scene.pgd();
  if (!one_in(20)) scene.pge(ip);
}

TEST(FastByHand, InterruptsAndKnownModes) {
  // 1000: `nop; nop; jmp 1006; nop; nop; vmlaunch; jz 1000; jmp rax`
  const std::vector<std::uint8_t> code{0x90, 0x90, 0xeb, 0x02, 0x90, 0x90, 0x0f,
                                       0x01, 0xc2, 0x74, 0xf5, 0xff, 0xe0};
  for (unsigned seed = 0; seed < seeds(60); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    Scene scene(code);
    scene.options.errata = seed % 2 == 0 ? packet::errata_for({}) : packet::Errata{};
    scene.begin();
    for (unsigned i = 0; i < 40; ++i) {
      const auto some_ip = [&] {
        return Scene::kCode + std::array{0U, 1U, 2U, 6U, 9U, 4U, 11U}[random() % 7];
      };
      if (random() % 2 == 0) scene.tnt(random() % 2 == 0 ? "t" : "ttt");
      if (random() % 4 == 0) scene.tnt("n").tip(Scene::kCode);
      scene.fup(some_ip());
      if (random() % 3 == 0) scene.raw({0, 0, 0});
      if (random() % 8 == 0) scene.add(PacketKind::PIP, 0x3000);
      if (random() % 4 == 0) {
        scene.pgd(0x9000);
      } else if (random() % 8 == 0) {
        scene.tip(some_ip());
      } else {
        scene.pgd();
      }
      put_while_off(scene, random, some_ip());
    }
    expect_same(scene);
  }
}

TEST(FastByHand, DroppedPathCaches) {
  constexpr std::size_t kSize = std::size_t{1} << 17U;
  std::vector<std::uint8_t> code(kSize, 0x90);
  for (std::size_t at = 700; at + 4 < kSize; at += 700) {
    code[at] = 0x74;
    code[at + 1] = 0x00;
    code[at + 2] = 0xff;
    code[at + 3] = 0xe0;
  }
  Scene scene(code);
  scene.begin();
  std::mt19937_64 random(1);
  for (unsigned i = 0; i < 12000; ++i) {
    if (random() % 2 == 0) scene.tnt("t");
    scene.tip(Scene::kCode + random() % kSize / 4 * 4);
  }
  scene.raw(std::vector<std::uint8_t>(32, 0));
  const auto bundle = std::make_shared<trace::TraceBundle>(scene.bundle());
  trace::Stream stream;
  stream.data = trace::TraceBuffer::from_vector(scene.bytes());
  bundle->streams.push_back(stream);
  const code::image::Image image(bundle);
  for (const TableId table : {TableId::edges, TableId::branches}) {
    Reading reading;
    reading.table = table;
    FlowOptions options;
    const decoded::Tables fast = read(bundle, image, options, nullptr, reading);
    options.fast = false;
    EXPECT_EQ(difference(fast, read(bundle, image, options, nullptr, reading)), "");
  }
}

}  // namespace
}  // namespace ptkit::flow
