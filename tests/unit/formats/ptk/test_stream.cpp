// Trace bytes of bundles are read and unpacked lazily. The file may change in the meantime.
#include <gtest/gtest.h>

#include <thread>

#include "packet/decoder.h"
#include "sample.h"

namespace ptkit::formats {
namespace {

using test::as_bytes;
using test::Scratch;
using test::text_of;

constexpr std::size_t kChunk = std::size_t{1} << 20U;  // bytes of trace in one DATA chunk

// A sequence of PSB+, so that every chunk holds packets only.
std::string long_stream(std::size_t psbs) {
  std::string bytes;
  for (std::size_t i = 0; i < psbs; ++i) bytes += test::small_stream() + std::string(i % 7, '\x06');
  return bytes;
}

class StreamData : public ::testing::Test {
 protected:
  void SetUp() override {
    trace::TraceBundle bundle = test::sample();
    stream_ = long_stream(100'000);
    ASSERT_GT(stream_.size(), 2 * kChunk);
    bundle.streams.resize(1);
    bundle.streams[0].losses.clear();
    bundle.streams[0].data = test::buffer(stream_);
    path_ = scratch_.at("a.ptk");
    ASSERT_TRUE(save_ptk(bundle, path_, {}).ok());
    bytes_ = test::read_all(path_);
  }
  trace::TraceBundle reopen() const {
    auto opened = open(path_, {});
    EXPECT_TRUE(opened.ok()) << opened.failure().detail;
    return std::move(opened.value());
  }
  // Returns the offset of the stored bytes of the n-th DATA chunk.
  std::size_t stored(std::size_t number) const {
    std::size_t at = bytes_.find("PTKCDATA");
    for (; number > 0; --number) at = bytes_.find("PTKCDATA", at + 1);
    return at + ptk::kChunkHeaderBytes;
  }
  // Changes bytes of the file that is there.
  void overwrite(std::size_t at, const std::string& bytes) const {
    std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(at)) << bytes;
  }

  Scratch scratch_;
  std::string path_;
  std::string stream_;
  std::string bytes_;
};

TEST_F(StreamData, ReadsPartsAndTheWhole) {
  const trace::TraceBundle bundle = reopen();
  const trace::TraceBuffer& data = bundle.streams[0].data;
  ASSERT_EQ(data.size(), stream_.size());
  for (const std::size_t begin : {kChunk - 7, std::size_t{0}, 2 * kChunk, stream_.size() - 1, stream_.size()})
    EXPECT_EQ(text_of(data.part(begin, begin + 100)), stream_.substr(begin, 100)) << begin;
  EXPECT_TRUE(data.part(stream_.size() + 5, stream_.size() + 9).empty());
  EXPECT_TRUE(data.part(9, 5).empty());
  EXPECT_EQ(text_of(data.slice(kChunk - 3, 6).bytes()), stream_.substr(kChunk - 3, 6));
  EXPECT_EQ(text_of(data.bytes()), stream_);
}

TEST_F(StreamData, ReadsInSeveralThreads) {
  const trace::TraceBundle bundle = reopen();
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      const std::size_t begin = kChunk * (i % 3) + i;
      EXPECT_EQ(text_of(bundle.streams[0].data.part(begin, begin + 1000)), stream_.substr(begin, 1000));
      EXPECT_EQ(text_of(bundle.streams[0].data.bytes()), stream_);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(StreamData, StaysAfterTheFileIsReplaced) {
  trace::TraceBundle bundle = reopen();
  ASSERT_TRUE(save_ptk(bundle, path_, {}).ok());  // overwrites its own source
  EXPECT_EQ(text_of(bundle.streams[0].data.bytes()), stream_);
  EXPECT_EQ(text_of(reopen().streams[0].data.bytes()), stream_);
  bundle = reopen();
  std::filesystem::remove(path_);
  EXPECT_EQ(text_of(bundle.streams[0].data.bytes()), stream_);
}

// Reading a mapping would raise SIGBUS. Bytes that were not recorded must not appear.
TEST_F(StreamData, ReadsLostBytesAsBadOpcodes) {
  for (const bool cut : {false, true}) {
    SCOPED_TRACE(cut);
    const trace::TraceBundle bundle = reopen();
    const trace::TraceBuffer& data = bundle.streams[0].data;
    EXPECT_EQ(text_of(data.part(0, 10)), stream_.substr(0, 10));
    if (cut) {
      std::filesystem::resize_file(path_, stored(1) + 20);
    } else {
      overwrite(stored(1) + 20, "something else");
    }
    const std::string now = text_of(data.bytes());
    EXPECT_EQ(now.substr(0, kChunk), stream_.substr(0, kChunk));
    EXPECT_EQ(now.substr(2 * kChunk) == stream_.substr(2 * kChunk), !cut);
    packet::PacketDecoder decoder(data.bytes(), {}, {});
    ASSERT_EQ(decoder.sync_forward(0), base::Status::OK);
    packet::Packet packet;
    base::Status status = base::Status::OK;
    while (status == base::Status::OK) status = decoder.next(packet);
    EXPECT_NE(status, base::Status::END_OF_STREAM);
    EXPECT_LT(packet.offset, kChunk + 16);
  }
}

// The checksum is right, but the packed bytes are malformed.
TEST_F(StreamData, ReadsMalformedChunksAsBadOpcodes) {
  ptk::IndexEntry entry;
  const base::Bytes file = as_bytes(bytes_);
  const std::size_t at = stored(1) - ptk::kChunkHeaderBytes;
  ASSERT_TRUE(ptk::parse_header(file.subspan(at), entry.header));
  std::string payload = bytes_.substr(stored(1), entry.header.stored_size);
  payload.replace(payload.size() / 2, 40, 40, '\xff');
  entry.header.payload_check = ptk::crc32c(as_bytes(payload));
  std::vector<std::uint8_t> head;
  ptk::append_header(head, entry.header);
  std::string changed =
      bytes_.substr(0, bytes_.size() - 1);  // without the index, which holds the old checksum
  changed.replace(at, head.size() + payload.size(), std::string(head.begin(), head.end()) + payload);
  path_ = scratch_.write("packed.ptk", changed);
  const std::string now = text_of(reopen().streams[0].data.bytes());
  EXPECT_EQ(now.substr(0, kChunk), stream_.substr(0, kChunk));
  EXPECT_EQ(now.substr(kChunk, kChunk), std::string(kChunk, '\xd9'));
  EXPECT_EQ(now.substr(2 * kChunk), stream_.substr(2 * kChunk));
}

TEST(PtkFormat, ChecksumMatchesTheBitwiseCrc) {
  std::string bytes;
  for (std::size_t i = 0; i < 300; ++i) bytes += static_cast<char>(i * 7);
  // CRC by the polynomial, one bit at a time.
  const auto slow = [](base::Bytes some) {
    std::uint32_t value = ~std::uint32_t{0};
    for (const std::uint8_t byte : some) {
      value ^= byte;
      for (int bit = 0; bit < 8; ++bit) value = (value >> 1U) ^ ((value & 1U) != 0 ? 0x82f63b78U : 0U);
    }
    return ~value;
  };
  for (std::size_t begin = 0; begin < 9; ++begin) {
    for (std::size_t end = begin; end <= bytes.size(); ++end) {
      const base::Bytes some = as_bytes(bytes).subspan(begin, end - begin);
      ASSERT_EQ(ptk::crc32c(some), slow(some)) << begin << ' ' << end;
      ASSERT_EQ(ptk::crc32c_by_table(some), slow(some)) << begin << ' ' << end;
    }
  }
}

}  // namespace
}  // namespace ptkit::formats
