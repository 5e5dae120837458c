// Stream bytes that are produced when they are read.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "formats/common/lazy_bytes.h"

namespace ptkit::formats {
namespace {

class Counted final : public LazyBytes {
 public:
  Counted() : LazyBytes({0, 10, 15}, 30) {}
  std::vector<std::size_t> made;

  [[nodiscard]] std::optional<trace::TraceBuffer> again() const override {
    last = std::make_shared<Counted>();
    return buffer_of(last);
  }
  mutable std::shared_ptr<Counted> last;

 private:
  void produce(std::size_t part, std::span<std::uint8_t> out) noexcept override {
    made.push_back(part);
    for (std::uint8_t& byte : out) byte = static_cast<std::uint8_t>('a' + part);
  }
};

TEST(LazyBytes, ProducesOnlyPartsThatAreRead) {
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

TEST(LazyBytes, ProducesForgottenPartsAgain) {
  const auto data = std::make_shared<Counted>();
  const auto shared = trace::TraceBuffer::from_source(data->bytes(), data);
  EXPECT_EQ(shared.bytes()[29], 'c');
  shared.forget_before(30);
  EXPECT_EQ(shared.bytes()[0], 'a');
  EXPECT_EQ(data->made.size(), 3U);  // other users may read it
  const auto own = shared.again();
  const std::vector<std::size_t>& made = data->last->made;
  EXPECT_EQ(own.size(), 30U);
  EXPECT_NE(own.part(0, 1).data(), shared.part(0, 1).data());
  EXPECT_EQ(made, std::vector<std::size_t>{0});
  own.forget_before(9);
  EXPECT_EQ(own.part(0, 1)[0], 'a');
  EXPECT_EQ(made.size(), 1U);  // a part that is only partly forgotten stays
  EXPECT_EQ(own.part(14, 16)[1], 'c');
  own.forget_before(15);
  EXPECT_EQ(own.part(15, 30)[0], 'c');
  EXPECT_EQ(made, (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_EQ(own.part(9, 11)[1], 'b');
  EXPECT_EQ(made, (std::vector<std::size_t>{0, 1, 2, 0, 1}));
  own.forget_before(30);
  const base::Bytes all = own.bytes();
  EXPECT_EQ(std::string(all.begin(), all.end()), std::string(10, 'a') + "bbbbb" + std::string(15, 'c'));
  EXPECT_EQ(made.size(), 8U);
  EXPECT_EQ(data->made.size(), 3U);
}

// Memory is released in whole pages; bytes of later parts stay.
TEST(LazyBytes, ReleasesMemoryOfForgottenParts) {
  constexpr std::size_t kPart = 10'000;
  std::vector<trace::TraceBuffer> parts;
  for (std::size_t i = 0; i < 100; ++i)
    parts.push_back(
        trace::TraceBuffer::from_vector(std::vector<std::uint8_t>(kPart, static_cast<std::uint8_t>(i + 1))));
  const auto data = join_buffers(std::move(parts)).value().again();
  for (std::size_t i = 0; i < 99; ++i) {
    const base::Bytes two = data.part(i * kPart, (i + 2) * kPart);
    data.forget_before((i + 1) * kPart);
    EXPECT_EQ(i == 0 ? 0 : *(two.data() - kPart), 0) << i;  // a page without bytes of later parts
    ASSERT_TRUE(std::all_of(two.begin() + kPart, two.end(), [i](auto byte) { return byte == i + 2; })) << i;
  }
  EXPECT_EQ(data.part(5, 6)[0], 1);
}

TEST(LazyBytes, JoinsBuffers) {
  const auto part = [](const std::string& text) {
    return trace::TraceBuffer::from_vector({text.begin(), text.end()});
  };
  const auto joined = join_buffers({part("one"), part(""), part("two"), part("three")});
  ASSERT_TRUE(joined.ok());
  const base::Bytes all = joined.value().bytes();
  EXPECT_EQ(std::string(all.begin(), all.end()), "onetwothree");
  const auto only = part("one");
  EXPECT_EQ(join_buffers({only}).value().bytes().data(), only.bytes().data());  // not copied
  EXPECT_EQ(join_buffers({}).value().size(), 0U);
}

}  // namespace
}  // namespace ptkit::formats
