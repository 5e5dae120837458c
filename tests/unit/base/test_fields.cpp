// Fields: one description writes and reads them.
#include <gtest/gtest.h>

#include "base/fields.h"

namespace ptkit::base {
namespace {

struct Sample {
  std::vector<std::string> names;
  std::uint16_t number = 0;
};

template <typename Fields>
void describe(Fields& fields, Sample& sample) {
  list_fields(fields, sample.names, [&](std::string& one) { fields.text(one); });
  fields(sample.number);
}

std::vector<std::uint8_t> written(Sample sample) {
  FieldWriter fields;
  describe(fields, sample);
  return fields.bytes();
}

TEST(Fields, TextsAndListsRoundTrip) {
  const std::vector<std::uint8_t> bytes = written({{"", "name", std::string("a\0b", 3)}, 7});
  FieldReader fields(bytes);
  Sample out{{"before"}, 0};
  describe(fields, out);
  EXPECT_TRUE(fields.good());
  EXPECT_TRUE(fields.rest().empty());
  EXPECT_EQ(out.names, (std::vector<std::string>{"", "name", std::string("a\0b", 3)}));
  EXPECT_EQ(out.number, 7);
}

TEST(Fields, RejectsLengthsBeyondTheInput) {
  const std::vector<std::uint8_t> good = written({{"name"}, 7});
  for (std::size_t size = 0; size < good.size(); ++size) {
    FieldReader fields(Bytes(good).first(size));
    Sample out;
    describe(fields, out);
    EXPECT_FALSE(fields.good()) << size;
  }
  for (const std::size_t offset : {std::size_t{0}, std::size_t{8}}) {  // the count, the length
    std::vector<std::uint8_t> damaged = good;
    for (std::size_t i = 0; i < 8; ++i) damaged[offset + i] = 0xff;
    FieldReader fields(damaged);
    Sample out;
    describe(fields, out);
    EXPECT_FALSE(fields.good()) << offset;
    EXPECT_LE(out.names.size(), 3U);
  }
}

}  // namespace
}  // namespace ptkit::base
