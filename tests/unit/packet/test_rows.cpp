// Rows filled in bulk equal PacketDecoder's packets, for every instruction set that this machine has.
#include <gtest/gtest.h>

#include "packet/scan.h"
#include "streams.h"

namespace ptkit::packet::test {
namespace {

using base::Status;

struct Rows {
  std::vector<Packet> packets;
  std::vector<std::pair<std::uint64_t, Status>> errors;
  DecoderState state;
};

// Continues after an error at the next PSB; false: there is none.
bool note_error(base::Bytes stream, Status status, Rows& rows) {
  rows.errors.emplace_back(rows.state.position, status);
  PacketDecoder decoder(stream, rows.state);
  const bool found = decoder.sync_forward(rows.state.position + 1) == Status::OK;
  rows.state = decoder.state();
  return found;
}

Rows read_simply(base::Bytes stream, DecoderState from, const Errata& errata) {
  Rows rows;
  rows.state = from;
  for (;;) {
    PacketDecoder decoder(stream, rows.state, errata);
    Packet packet;
    Status status = decoder.next(packet);
    for (; status == Status::OK; status = decoder.next(packet)) rows.packets.push_back(packet);
    rows.state = decoder.state();
    if (status == Status::END_OF_STREAM || !note_error(stream, status, rows)) return rows;
  }
}

struct Cells {
  explicit Cells(std::size_t room)
      : offset(room), ip(room), payload(room), payload2(room), size(room), kind(room), flags(room) {}
  std::vector<std::uint64_t> offset, ip, payload, payload2;
  std::vector<std::uint32_t> size;
  std::vector<std::uint8_t> kind, flags;
  PacketColumns columns(unsigned mask) {
    const auto wanted = [mask](unsigned bit, auto& cells) {
      return (mask >> bit & 1) != 0 ? cells.data() : nullptr;
    };
    return {wanted(0, offset), wanted(1, size),    wanted(2, kind),    wanted(3, flags),
            wanted(4, ip),     wanted(5, payload), wanted(6, payload2)};
  }
};

void expect_equal(base::Bytes stream, base::cpu::Isa isa, DecoderState from, bool errata, unsigned mask,
                  std::size_t step) {
  const Errata known = errata ? errata_for({}) : Errata{};
  const Rows expected = read_simply(stream, from, known);
  Cells cells(expected.packets.size() + step + kPacketRowSlack);
  const PacketColumns columns = cells.columns(mask);
  Rows rows;
  rows.state = from;
  std::size_t count = 0;
  for (;;) {
    const std::uint64_t limit = step % 2 == 0 ? UINT64_MAX : rows.state.position + 500;
    const auto filled = fill_packets(stream, rows.state, known, columns.from(count), step, limit, isa);
    ASSERT_LE(filled.rows, step);
    count += filled.rows;
    ASSERT_LE(count, expected.packets.size());
    if (filled.status == Status::OK) continue;
    if (filled.status == Status::END_OF_STREAM || !note_error(stream, filled.status, rows)) break;
  }
  ASSERT_EQ(count, expected.packets.size());
  ASSERT_EQ(rows.errors, expected.errors);
  ASSERT_EQ(rows.state.position, expected.state.position);
  ASSERT_EQ(rows.state.last_ip, expected.state.last_ip);
  ASSERT_EQ(rows.state.in_psb, expected.state.in_psb);
  for (std::size_t row = 0; row < count; ++row) {
    const Packet& packet = expected.packets[row];
    const auto where = [&] {
      return std::string(packet_name(packet.kind)) + " at " + std::to_string(packet.offset);
    };
    const auto expect = [&](const char* column, unsigned bit, std::uint64_t cell, std::uint64_t value) {
      if ((mask >> bit & 1) == 0) return;
      ASSERT_EQ(cell, value) << column << " of " << where();
    };
    ASSERT_NO_FATAL_FAILURE(expect("offset", 0, cells.offset[row], packet.offset));
    ASSERT_NO_FATAL_FAILURE(expect("size", 1, cells.size[row], packet.size));
    ASSERT_NO_FATAL_FAILURE(expect("kind", 2, cells.kind[row], static_cast<std::uint64_t>(packet.kind)));
    ASSERT_NO_FATAL_FAILURE(expect("flags", 3, cells.flags[row], packet.flags));
    ASSERT_NO_FATAL_FAILURE(expect("ip", 4, cells.ip[row], packet.ip));
    ASSERT_NO_FATAL_FAILURE(expect("payload", 5, cells.payload[row], packet.payload));
    ASSERT_NO_FATAL_FAILURE(expect("payload2", 6, cells.payload2[row], packet.payload2));
  }
}

constexpr unsigned kAll = 0x7f;
constexpr std::size_t kSteps[] = {5000, 333, 100, 1};

class RowsInBulk : public testing::TestWithParam<base::cpu::Isa> {
 protected:
  void SetUp() override {
    if (!base::cpu::isa_available(GetParam()))
      GTEST_SKIP() << "not on this machine: " << base::cpu::isa_name(GetParam());
  }
};

TEST_P(RowsInBulk, OfRandomStreamsOfAllKinds) {
  for (const Mix& mix : kMixes) {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      const Buffer stream = random_stream(seed, mix, 3000);
      SCOPED_TRACE(std::string(mix.name) + ", seed " + std::to_string(seed));
      const auto step = kSteps[seed % 4];
      const unsigned mask = seed % 2 != 0 ? kAll : static_cast<unsigned>(seed * 37) & kAll;
      ASSERT_NO_FATAL_FAILURE(expect_equal(stream, GetParam(), {}, seed % 3 == 0, mask, step));
      DecoderState known;
      known.last_ip = 0xffffffff81234567;
      known.last_ip_known = true;
      known.in_psb = seed % 5 == 0;
      ASSERT_NO_FATAL_FAILURE(
          expect_equal(damaged(stream, seed), GetParam(), known, seed % 3 == 0, kAll, step));
    }
  }
}

TEST_P(RowsInBulk, OfRandomBytes) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Buffer stream = random_bytes(seed, 2000);
    ASSERT_NO_FATAL_FAILURE(expect_equal(stream, GetParam(), {}, seed % 5 == 0, kAll, kSteps[seed % 4]));
  }
}

TEST_P(RowsInBulk, OfEveryTruncation) {
  const Buffer stream = random_stream(1, kMixes[0], 300) + random_stream(1, kMixes[2], 300);
  for (std::size_t size = 0; size <= stream.size(); ++size) {
    SCOPED_TRACE("size " + std::to_string(size));
    const base::Bytes part = base::Bytes(stream).first(size);
    ASSERT_NO_FATAL_FAILURE(expect_equal(part, GetParam(), {}, true, kAll, 1000));
    ASSERT_NO_FATAL_FAILURE(
        expect_equal(base::Bytes(stream).subspan(size), GetParam(), {}, false, kAll, 150));
  }
}

TEST_P(RowsInBulk, OfLongRunsOfPads) {
  Buffer stream = psb() + Buffer(std::size_t{3} << 20, 0) + bytes_of("6d 11 22 33 44 55 66");
  for (int i = 0; i < 200; ++i) stream = stream + Buffer(static_cast<std::size_t>(i), 0) + bytes_of("06");
  for (const std::size_t step : kSteps) expect_equal(stream, GetParam(), {}, false, kAll, step);
}

TEST_P(RowsInBulk, OfTheCorpus) {
  const auto streams = corpus_streams();
  if (streams.empty()) GTEST_SKIP() << "no corpus (PTKIT_CORPUS)";
  for (const auto& [name, stream] : streams) {
    SCOPED_TRACE(name);
    ASSERT_NO_FATAL_FAILURE(expect_equal(stream, GetParam(), {}, true, kAll, 5000));
    ASSERT_NO_FATAL_FAILURE(expect_equal(stream, GetParam(), {}, false, kAll, 777));
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, RowsInBulk, testing::ValuesIn(base::cpu::kIsas),
                         [](const auto& of) { return std::string(base::cpu::isa_name(of.param)); });

}  // namespace
}  // namespace ptkit::packet::test
