// Counts in bulk equal those of PacketDecoder, for every instruction set that this machine has.
#include <gtest/gtest.h>

#include "packet/scan.h"
#include "streams.h"

namespace ptkit::packet::test {
namespace {

using base::Status;

struct Counted {
  PacketCounts counts;
  DecoderState state;
};

// One packet after the other.
Counted count_simply(base::Bytes stream, bool sync, const Errata& errata) {
  Counted all;
  PacketDecoder decoder(stream, {}, errata);
  const auto resync = [&](std::uint64_t from) {
    const std::uint64_t before = decoder.position();
    static_cast<void>(decoder.sync_forward(from));
    all.counts.lost_bytes += decoder.position() - before;
  };
  if (sync) resync(0);
  for (;;) {
    Packet packet;
    const Status status = decoder.next(packet);
    if (status == Status::END_OF_STREAM) break;
    if (status == Status::OK) {
      all.counts.packets[static_cast<std::size_t>(packet.kind)] +=
          packet.kind == PacketKind::PAD ? packet.payload : 1;
      if (packet.kind == PacketKind::TNT_8 || packet.kind == PacketKind::TNT_64) {
        all.counts.tnt_bits += packet.payload2;
      }
    } else {
      ++all.counts.errors;
      resync(decoder.position() + 1);
    }
  }
  all.state = decoder.state();
  return all;
}

void expect_equal(base::Bytes stream, base::cpu::Isa isa, bool sync, bool errata) {
  const Errata known = errata ? errata_for({}) : Errata{};
  const Counted expected = count_simply(stream, sync, known);
  PacketCounter counter(stream, sync, known, isa);
  while (counter.run(1000)) {
  }
  for (std::size_t kind = 0; kind < kPacketKinds; ++kind) {
    ASSERT_EQ(counter.counts().packets[kind], expected.counts.packets[kind])
        << packet_name(static_cast<PacketKind>(kind));
  }
  ASSERT_EQ(counter.counts().tnt_bits, expected.counts.tnt_bits);
  ASSERT_EQ(counter.counts().errors, expected.counts.errors);
  ASSERT_EQ(counter.counts().lost_bytes, expected.counts.lost_bytes);
  const DecoderState state = counter.state();
  ASSERT_EQ(state.position, expected.state.position);
  ASSERT_EQ(state.last_ip, expected.state.last_ip);
  ASSERT_EQ(state.last_ip_known, expected.state.last_ip_known);
  ASSERT_EQ(state.in_psb, expected.state.in_psb);
  ASSERT_EQ(state.block_open, expected.state.block_open);
  PacketCounter at_once(stream, sync, known, isa);
  ASSERT_FALSE(at_once.run());
  ASSERT_EQ(at_once.counts(), counter.counts());
}

class Counts : public testing::TestWithParam<base::cpu::Isa> {
 protected:
  void SetUp() override {
    if (!base::cpu::isa_available(GetParam()))
      GTEST_SKIP() << "not on this machine: " << base::cpu::isa_name(GetParam());
  }
};

TEST_P(Counts, OfRandomStreamsOfAllKinds) {
  for (const Mix& mix : kMixes) {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      const Buffer stream = random_stream(seed, mix, 3000);
      SCOPED_TRACE(std::string(mix.name) + ", seed " + std::to_string(seed));
      ASSERT_NO_FATAL_FAILURE(expect_equal(stream, GetParam(), seed % 2 != 0, seed % 3 == 0));
      ASSERT_NO_FATAL_FAILURE(expect_equal(damaged(stream, seed), GetParam(), seed % 2 != 0, seed % 3 == 0));
    }
  }
}

TEST_P(Counts, OfRandomBytes) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ASSERT_NO_FATAL_FAILURE(expect_equal(random_bytes(seed, 2000), GetParam(), seed % 2 != 0, seed % 5 == 0));
  }
}

TEST_P(Counts, OfEveryTruncation) {
  const Buffer stream = random_stream(1, kMixes[0], 300) + random_stream(1, kMixes[2], 300);
  for (std::size_t size = 0; size <= stream.size(); ++size) {
    SCOPED_TRACE("size " + std::to_string(size));
    const base::Bytes part = base::Bytes(stream).first(size);
    ASSERT_NO_FATAL_FAILURE(expect_equal(part, GetParam(), false, true));
    ASSERT_NO_FATAL_FAILURE(expect_equal(base::Bytes(stream).subspan(size), GetParam(), false, false));
  }
}

TEST_P(Counts, OfTheCorpus) {
  const auto streams = corpus_streams();
  if (streams.empty()) GTEST_SKIP() << "no corpus (PTKIT_CORPUS)";
  for (const auto& [name, stream] : streams) {
    SCOPED_TRACE(name);
    ASSERT_NO_FATAL_FAILURE(expect_equal(stream, GetParam(), true, true));
    ASSERT_NO_FATAL_FAILURE(expect_equal(stream, GetParam(), false, false));
  }
}

// A FUP tells the last IP, but not that packets before it are a PSB+.
TEST_P(Counts, KnowThatAPsbIsOpen) {
  const Buffer cycles(40'000, 0x03);
  const Buffer fup = bytes_of("7d 00 10 40 00 00 00");
  const Buffer tip = bytes_of("6d 00 10 40 00 00 00");
  for (const Buffer& end : {Buffer(), bytes_of("02 23"), tip}) {
    const Buffer stream = psb() + cycles + fup + cycles + end + cycles + fup + cycles;
    expect_equal(stream, GetParam(), true, false);
    PacketCounter counter(stream, true, {}, GetParam());
    ASSERT_FALSE(counter.run());
    EXPECT_EQ(counter.state().in_psb, end.empty());
    EXPECT_EQ(counter.state().last_ip, 0x401000u);
  }
}

TEST_P(Counts, KnowErrataAndLosses) {
  const Buffer filler(200, 0x06);
  const Buffer stream = bytes_of("ff ff ff") + psb() + bytes_of("02 23 00 00 00 05 11 11") + psb() + filler +
                        bytes_of("07 02 f3") + filler + bytes_of("02 73 01 00 01 00 00 00") + filler;
  for (const bool errata : {false, true}) expect_equal(stream, GetParam(), true, errata);
  PacketCounter counter(stream, true, {}, GetParam());
  ASSERT_FALSE(counter.run());
  const PacketCounts& counts = counter.counts();
  EXPECT_EQ(counts.packets[static_cast<std::size_t>(PacketKind::PSB)], 2u);
  EXPECT_EQ(counts.packets[static_cast<std::size_t>(PacketKind::PAD)], 3u);
  EXPECT_EQ(counts.packets[static_cast<std::size_t>(PacketKind::TNT_8)], 400u);
  EXPECT_EQ(counts.packets[static_cast<std::size_t>(PacketKind::CYC)], 2u);
  EXPECT_EQ(counts.tnt_bits, 400u);
  EXPECT_EQ(counts.errors, 2u);
}

INSTANTIATE_TEST_SUITE_P(Isa, Counts, testing::ValuesIn(base::cpu::kIsas),
                         [](const auto& of) { return std::string(base::cpu::isa_name(of.param)); });

}  // namespace
}  // namespace ptkit::packet::test
