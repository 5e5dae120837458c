// Packets in bulk give the rows, errors and gaps of packets one by one.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "tables/columns/sources/packet_source.h"

namespace ptkit::tables::columns {
namespace {

// PacketDecoder by another name: read one packet after the other.
class SimpleDecoder : public packet::PacketDecoder {
 public:
  using PacketDecoder::PacketDecoder;
};

std::vector<std::uint8_t> damaged_stream(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::uint8_t> bytes;
  while (bytes.size() < 20000) {
    if (random() % 300 == 0) {
      for (int i = 0; i < 8; ++i) bytes.insert(bytes.end(), {0x02, 0x82});
    }
    constexpr std::uint8_t kBytes[] = {0x00, 0x06, 0x80, 0x2d, 0x71, 0x21,
                                       0x1d, 0x59, 0x03, 0x07, 0x06, 0x0e};
    bytes.push_back(random() % 500 == 0 ? static_cast<std::uint8_t>(random())
                                        : kBytes[random() % sizeof kBytes]);
  }
  return bytes;
}

template <typename Decoder>
std::unique_ptr<RowSink> rows_of(base::Bytes stream, std::size_t slice) {
  static const std::atomic<bool> cancelled{false};
  static const trace::Stream of;
  Request request;
  request.table = TableId::packets;
  request.time = false;
  auto sink = std::make_unique<RowSink>(request, cancelled);
  sink->begin_stream(0, of, nullptr);
  PacketSource<Decoder> source(stream, Decoder(stream), true, *sink);
  do {
    sink->begin_slice(sink->main()->rows() + slice, slice);
  } while (source.run());
  return sink;
}

void expect_same(Batch& left, Batch& right) {
  ASSERT_EQ(left.rows(), right.rows());
  const auto columns = columns_of(left.table());
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (left.rows() == 0 || columns[i].name.starts_with("tsc")) continue;  // no times here
    const std::size_t size = left.rows() * cell_size(columns[i].type);
    EXPECT_EQ(std::memcmp(left.buffer(i).data(), right.buffer(i).data(), size), 0) << columns[i].name;
  }
}

TEST(PacketSource, BulkEqualsOneByOne) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    const auto stream = damaged_stream(seed);
    const auto simple = rows_of<SimpleDecoder>(stream, 100);
    const auto bulk = rows_of<packet::PacketDecoder>(stream, seed % 2 != 0 ? 100000 : 777);
    expect_same(*simple->main(), *bulk->main());
    expect_same(*simple->tables().errors().table(), *bulk->tables().errors().table());
    expect_same(*simple->tables().gaps().table(), *bulk->tables().gaps().table());
    EXPECT_GT(bulk->tables().errors().table()->rows(), 0u);
  }
}

}  // namespace
}  // namespace ptkit::tables::columns
