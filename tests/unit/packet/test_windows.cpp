// Long streams in windows: the cuts, searches for PSBs, and the amount of unpacked bytes.
#include <gtest/gtest.h>

#include <bitset>
#include <memory>

#include "packet/scan.h"
#include "packet/windows.h"
#include "streams.h"

namespace ptkit::packet::test {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20U;

// Copies chunks on demand, overwrites freed ones, and counts.
class Copied final : public trace::ByteSource {
 public:
  struct Counts {
    std::size_t now = 0;
    std::size_t most = 0;
    std::size_t all = 0;
  };
  Copied(std::shared_ptr<const Buffer> from, std::shared_ptr<Counts> counts)
      : from_(std::move(from)),
        counts_(std::move(counts)),
        bytes_(from_->size(), 0xd9),
        made_(from_->size() / kPiece + 1) {}

  void need(std::size_t begin, std::size_t end) noexcept override {
    for (std::size_t i = begin / kPiece; i * kPiece < end; ++i) {
      if (made_[i]) continue;
      made_[i] = true;
      const std::size_t behind = std::min((i + 1) * kPiece, from_->size());
      std::copy(from_->data() + i * kPiece, from_->data() + behind, bytes_.data() + i * kPiece);
      counts_->most = std::max(counts_->most, ++counts_->now);
      ++counts_->all;
    }
  }
  [[nodiscard]] std::optional<trace::TraceBuffer> again() const override { return buffer_of(from_, counts_); }
  void forget_before(std::size_t end) noexcept override {
    for (std::size_t i = 0; i < made_.size() && (i + 1) * kPiece <= end; ++i) {
      if (!made_[i]) continue;
      made_[i] = false;
      std::fill(bytes_.data() + i * kPiece, bytes_.data() + (i + 1) * kPiece, 0xd9);
      --counts_->now;
    }
  }

  static trace::TraceBuffer buffer_of(std::shared_ptr<const Buffer> from, std::shared_ptr<Counts> counts) {
    auto made = std::make_shared<Copied>(std::move(from), std::move(counts));
    const base::Bytes bytes = made->bytes_;
    return trace::TraceBuffer::from_source(bytes, std::move(made));
  }

 private:
  std::shared_ptr<const Buffer> from_;
  std::shared_ptr<Counts> counts_;
  Buffer bytes_;
  std::vector<bool> made_;
};

// About so many megabytes of packets of all kinds.
Buffer long_stream(std::size_t megabytes) {
  Buffer all;
  for (std::size_t i = 0; all.size() < megabytes * kPiece; ++i) {
    const Buffer more = random_stream(4 * (i % 50) + 1, kMixes[i % std::size(kMixes)], 20'000);
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

std::bitset<kPacketKinds> kinds_of(base::Bytes bytes) {
  PacketCounter counter(bytes, true);
  static_cast<void>(counter.run());
  std::bitset<kPacketKinds> kinds;
  for (std::size_t i = 0; i < kPacketKinds; ++i) kinds.set(i, counter.counts().packets[i] != 0);
  return kinds;
}

TEST(Windows, SplitStreamAtPsbs) {
  const auto stream = std::make_shared<const Buffer>(long_stream(40));
  const auto counts = std::make_shared<Copied::Counts>();
  PsbWindows windows(Copied::buffer_of(stream, counts));
  std::size_t done = 0;
  std::size_t number = 0;
  std::bitset<kPacketKinds> kinds;
  for (base::Bytes bytes = windows.next(); !bytes.empty(); bytes = windows.next()) {
    ASSERT_EQ(windows.begin(), done);
    ASSERT_LE(done + bytes.size(), stream->size());
    ASSERT_TRUE(std::equal(bytes.begin(), bytes.end(), stream->begin() + static_cast<std::ptrdiff_t>(done)));
    if (number++ != 0) {
      EXPECT_EQ(find_psb(bytes, 0), 0U);
    }
    kinds |= kinds_of(bytes);
    done += bytes.size();
  }
  EXPECT_EQ(done, stream->size());
  EXPECT_EQ(number, 3U);
  EXPECT_EQ(kinds, kinds_of(*stream));
  EXPECT_LE(counts->most, PsbWindows::kLeastBytes / kPiece + 3);
  EXPECT_LE(counts->all, stream->size() / kPiece + 1 + 2 * number);
  EXPECT_TRUE(windows.next().empty());
}

TEST(Windows, EndAnywhereWithoutPsb) {
  constexpr std::size_t kLongest = PsbWindows::kLeastBytes + PsbWindows::kSearchedBytes;
  Buffer zeros(kLongest + 5 * kPiece, 0);
  const Buffer begin = psb();
  zeros.insert(zeros.end(), begin.begin(), begin.end());
  PsbWindows windows(
      Copied::buffer_of(std::make_shared<const Buffer>(zeros), std::make_shared<Copied::Counts>()));
  EXPECT_EQ(windows.next().size(), kLongest);
  EXPECT_EQ(windows.next().size(), zeros.size() - kLongest);
  EXPECT_TRUE(windows.next().empty());
  EXPECT_TRUE(PsbWindows(trace::TraceBuffer()).next().empty());
}

// A run of 02 82 over a border between chunks is one run, and its end determines the PSBs.
TEST(Windows, FindPsbAcrossChunks) {
  for (std::size_t before = 0; before <= 40; ++before) {
    for (const std::size_t more : {0U, 6U, 16U, 22U}) {  // bytes of 02 82 in front of the last PSB
      SCOPED_TRACE(std::to_string(before) + " " + std::to_string(more));
      Buffer bytes(kPiece - before, 0x06);
      while (bytes.size() < kPiece - before + more + 16) bytes.insert(bytes.end(), {0x02, 0x82});
      bytes.insert(bytes.end(), {0x02, 0x23});
      const auto stream = std::make_shared<const Buffer>(std::move(bytes));
      const auto data = Copied::buffer_of(stream, std::make_shared<Copied::Counts>());
      EXPECT_EQ(find_psb(data, 0), find_psb(*stream, 0));
      EXPECT_EQ(find_psb(data.again(), 7), find_psb(*stream, 7));
    }
  }
  const auto none = trace::TraceBuffer::from_vector(Buffer(3 * kPiece, 0x06));
  EXPECT_EQ(find_psb(none, 5), none.size());
  EXPECT_EQ(find_psb(none, none.size() + 5), none.size());
  EXPECT_EQ(find_psb(none, 0, kPiece / 2), kPiece / 2);
}

TEST(Windows, SearchFreesMemory) {
  Buffer bytes(20 * kPiece, 0x06);
  const Buffer end = psb();
  bytes.insert(bytes.end(), end.begin(), end.end());
  const auto counts = std::make_shared<Copied::Counts>();
  const auto data = Copied::buffer_of(std::make_shared<const Buffer>(bytes), counts);
  EXPECT_EQ(find_psb(data.again(), 0), 20 * kPiece);
  EXPECT_LE(counts->most, 3U);
  // What others use as well stays as it is.
  const base::Bytes all = data.bytes();
  data.forget_before(data.size());
  EXPECT_TRUE(std::equal(all.begin(), all.end(), bytes.begin()));
}

}  // namespace
}  // namespace ptkit::packet::test
