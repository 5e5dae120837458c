// Streams that are put together when they are read.
#include <gtest/gtest.h>

#include <string>

#include "formats/piecewise.h"

namespace ptkit::formats {
namespace {

class Counted final : public PiecewiseData {
 public:
  Counted() : PiecewiseData({0, 10, 15}, 30) {}
  std::vector<std::size_t> made;

 private:
  void make(std::size_t piece, std::span<std::uint8_t> out) noexcept override {
    made.push_back(piece);
    for (std::uint8_t& byte : out) byte = static_cast<std::uint8_t>('a' + piece);
  }
};

TEST(Piecewise, OnlyWhatIsNeededIsMade) {
  const auto data = std::make_shared<Counted>();
  const auto buffer = trace::TraceBuffer::from_source(data->bytes(), data);
  EXPECT_EQ(buffer.size(), 30U);
  EXPECT_TRUE(data->made.empty());
  EXPECT_EQ(buffer.part(12, 13)[0], 'b');
  EXPECT_EQ(data->made, std::vector<std::size_t>{1});
  EXPECT_EQ(buffer.part(14, 16)[1], 'c');
  EXPECT_EQ(data->made, (std::vector<std::size_t>{1, 2}));
  const base::Bytes all = buffer.bytes();
  EXPECT_EQ(data->made, (std::vector<std::size_t>{1, 2, 0}));
  EXPECT_EQ(std::string(all.begin(), all.end()), std::string(10, 'a') + "bbbbb" + std::string(15, 'c'));
}

TEST(Piecewise, PartsAreJoined) {
  const auto part = [](const std::string& text) {
    return trace::TraceBuffer::from_vector({text.begin(), text.end()});
  };
  const auto joined = join_parts({part("one"), part(""), part("two"), part("three")});
  ASSERT_TRUE(joined.ok());
  const base::Bytes all = joined.value().bytes();
  EXPECT_EQ(std::string(all.begin(), all.end()), "onetwothree");
  const auto only = part("one");
  EXPECT_EQ(join_parts({only}).value().bytes().data(), only.bytes().data());  // not copied
  EXPECT_EQ(join_parts({}).value().size(), 0U);
}

}  // namespace
}  // namespace ptkit::formats
