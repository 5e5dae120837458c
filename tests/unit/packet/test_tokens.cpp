// Tokens equal what PacketDecoder reads, for every instruction set that this machine has.
#include <gtest/gtest.h>

#include "packet/tokens.h"
#include "streams.h"

namespace ptkit::packet::test {
namespace {

using base::Status;

struct Token {
  std::uint64_t offset = 0;
  std::uint8_t code = 0;
  bool timed = false;
  std::uint64_t ip = 0;
  [[nodiscard]] bool operator==(const Token&) const = default;
};

struct Read {
  std::vector<Token> tokens;
  DecoderState state;
  bool timed = false;
};

// One packet after the other, up to one of another kind.
Read read_simply(base::Bytes stream, const DecoderState& from, const Errata& errata) {
  Read read;
  PacketDecoder decoder(stream, from, errata);
  for (;;) {
    read.state = decoder.state();
    Packet packet;
    if (decoder.next(packet) != Status::OK) return read;
    const auto kind = packet.kind;
    if (kind == PacketKind::PAD) continue;
    if (kind == PacketKind::CYC || kind == PacketKind::MTC || kind == PacketKind::TSC ||
        kind == PacketKind::TMA) {
      read.timed = true;
      continue;
    }
    if (kind != PacketKind::TNT_8 && !has_ip_payload(kind)) return read;
    std::uint8_t code = stream[packet.offset];
    if (kind != PacketKind::TNT_8) {
      code = static_cast<std::uint8_t>((code & TOKEN_KIND) | (packet.payload2 != 0 ? TOKEN_HAS_IP : 0));
    }
    read.tokens.push_back({packet.offset, code, read.timed, packet.ip});
    read.timed = false;
  }
}

Read read_in_bulk(base::Bytes stream, const DecoderState& from, const Errata& errata, std::size_t room,
                  simd::Isa isa) {
  Read read;
  read.state = from;
  std::vector<std::uint32_t> offset(room + kTokenSlack);
  std::vector<std::uint8_t> code(room + kTokenSlack);
  std::vector<std::uint64_t> ip(room + kTokenSlack);
  for (bool timed = false, other = false; !other;) {
    const std::uint64_t limit = room % 2 == 0 ? UINT64_MAX : read.state.position + 300;
    const Tokens tokens =
        read_tokens(stream, read.state, errata, limit, {offset.data(), code.data(), ip.data(), room}, isa);
    std::size_t next_ip = 0;
    for (std::size_t i = 0; i < tokens.count; ++i) {
      const bool has_ip = (code[i] & 1) != 0 && (code[i] & TOKEN_HAS_IP) != 0;
      read.tokens.push_back({tokens.begin + (offset[i] & ~kTokenTimed), code[i],
                             (offset[i] & kTokenTimed) != 0 || timed, has_ip ? ip[next_ip++] : 0});
      timed = false;
    }
    EXPECT_EQ(next_ip, tokens.ips);
    EXPECT_LE(tokens.count, room);
    timed = timed || tokens.timed;
    read.timed = timed;
    other = tokens.other;
  }
  return read;
}

void expect_equal(base::Bytes stream, simd::Isa isa, bool errata, std::size_t room) {
  const Errata known = errata ? errata_for({}) : Errata{};
  DecoderState from;
  from.last_ip = 0x7fff12345678;
  from.last_ip_known = true;
  // From stop to stop; the packets there are passed over.
  while (from.position < stream.size()) {
    const Read expected = read_simply(stream, from, known);
    const Read read = read_in_bulk(stream, from, known, room, isa);
    ASSERT_EQ(read.tokens.size(), expected.tokens.size()) << "from " << from.position;
    for (std::size_t i = 0; i < read.tokens.size(); ++i) {
      ASSERT_EQ(read.tokens[i], expected.tokens[i]) << "at " << expected.tokens[i].offset;
    }
    ASSERT_EQ(read.state.position, expected.state.position);
    ASSERT_EQ(read.state.last_ip, expected.state.last_ip);
    ASSERT_EQ(read.timed, expected.timed);
    from = expected.state;
    PacketDecoder decoder(stream, from, known);
    Packet packet;
    from.position = decoder.next(packet) == Status::OK ? decoder.position() : from.position + 1;
  }
}

class TokensInBulk : public testing::TestWithParam<simd::Isa> {
 protected:
  void SetUp() override {
    if (!simd::isa_available(GetParam()))
      GTEST_SKIP() << "not on this machine: " << simd::isa_name(GetParam());
  }
};

TEST_P(TokensInBulk, OfRandomStreams) {
  constexpr std::size_t kRooms[] = {5000, 333, 100, 3};
  for (const Mix& mix : kMixes) {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      SCOPED_TRACE(std::string(mix.name) + ", seed " + std::to_string(seed));
      const Buffer stream = random_stream(seed, mix, 3000);
      ASSERT_NO_FATAL_FAILURE(expect_equal(stream, GetParam(), seed % 3 == 0, kRooms[seed % 4]));
    }
  }
}

TEST_P(TokensInBulk, OfRandomBytes) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ASSERT_NO_FATAL_FAILURE(expect_equal(random_bytes(seed, 2000), GetParam(), seed % 5 == 0, 500));
  }
}

TEST_P(TokensInBulk, OfEveryTruncation) {
  const Buffer stream = random_stream(1, kMixes[2], 500);
  for (std::size_t size = 0; size <= stream.size(); ++size) {
    SCOPED_TRACE("size " + std::to_string(size));
    ASSERT_NO_FATAL_FAILURE(expect_equal(base::Bytes(stream).first(size), GetParam(), true, 1000));
  }
}

TEST_P(TokensInBulk, OfTimedStreams) {
  RandomPackets random(5);
  Buffer stream;
  while (stream.size() < 200000) {  // longer than what one call reads
    const auto kind = static_cast<unsigned>(random.bits(16) % 10);
    ASSERT_EQ(encode(random.make(PacketKind::CYC, false), stream, false), Status::OK);
    if (kind == 0) {
      ASSERT_EQ(encode(random.make(PacketKind::MTC, false), stream, false), Status::OK);
    }
    const auto next = kind < 3 ? PacketKind::TIP : kind == 4 ? PacketKind::TSC : PacketKind::TNT_8;
    ASSERT_EQ(encode(random.make(next, false), stream, false), Status::OK);
  }
  for (const std::size_t room : {std::size_t{100000}, std::size_t{777}})
    expect_equal(stream, GetParam(), false, room);
}

TEST_P(TokensInBulk, NeedTheLastIp) {
  const Buffer stream(200, 0x06);
  DecoderState state;
  const Tokens tokens = read_tokens(stream, state, {}, UINT64_MAX, {}, GetParam());
  EXPECT_EQ(tokens.count, 0u);
  EXPECT_TRUE(tokens.other);
  EXPECT_EQ(state.position, 0u);
}

TEST_P(TokensInBulk, OfTheCorpus) {
  const auto streams = corpus_streams();
  if (streams.empty()) GTEST_SKIP() << "no corpus (PTKIT_CORPUS)";
  for (const auto& [name, stream] : streams) {
    SCOPED_TRACE(name);
    ASSERT_NO_FATAL_FAILURE(expect_equal(stream, GetParam(), true, 4096));
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, TokensInBulk, testing::ValuesIn(simd::kIsas),
                         [](const auto& of) { return std::string(simd::isa_name(of.param)); });

}  // namespace
}  // namespace ptkit::packet::test
