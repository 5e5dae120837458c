// Lines of rows, field by field.
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <memory>

#include "packet/packet.h"
#include "tables/text/fields.h"

namespace ptkit::tables::text {
namespace {

template <typename T, std::size_t N>
Cells cells(const std::array<T, N>& values) {
  return std::span<const T>(values);
}

Field number(Cells values, Number form) {
  Field field;
  field.value = NumberField{values, form};
  return field;
}

std::string written(Lines lines, std::vector<Note> notes = {}) {
  TextBuffer buffer;
  std::string all;
  write_lines(lines, notes, buffer, [&](std::string_view text) {
    EXPECT_EQ(text.back(), '\n');
    all += text;
  });
  return all;
}

std::string one(const Field& field, std::size_t rows) { return written({{field}, rows, {}, false}); }

TEST(Fields, WriteNumbersInTheirForm) {
  constexpr std::array<std::uint64_t, 3> kValues = {0, 0xabc, std::numeric_limits<std::uint64_t>::max()};
  EXPECT_EQ(one(number(cells(kValues), Number::HEX16), 3),
            "0000000000000000\n0000000000000abc\nffffffffffffffff\n");
  EXPECT_EQ(one(number(cells(kValues), Number::HEX), 3), "0\nabc\nffffffffffffffff\n");
  EXPECT_EQ(one(number(cells(kValues), Number::DECIMAL), 3), "0\n2748\n18446744073709551615\n");
  constexpr std::array<std::int32_t, 2> kSigned = {-1, std::numeric_limits<std::int32_t>::min()};
  EXPECT_EQ(one(number(cells(kSigned), Number::DECIMAL), 2), "-1\n-2147483648\n");
  constexpr std::array<std::int64_t, 4> kTimes = {0, 1'000'000'001, 12'034'000'000, -1};
  EXPECT_EQ(one(number(cells(kTimes), Number::SECONDS), 4),
            "0.000000000\n1.000000001\n12.034000000\n-1.999999999\n");
}

TEST(Fields, WriteWhatIsNotKnown) {
  constexpr std::array<std::uint8_t, 3> kValues = {1, 2, 3};
  constexpr std::array<bool, 3> kKnown = {true, false, true};
  Field field = number(cells(kValues), Number::DECIMAL);
  field.first = PaddedText("a ");
  field.known = kKnown;
  field.before = PaddedText("<");
  field.after = PaddedText(">");
  field.unknown = PaddedText("-");
  EXPECT_EQ(one(field, 3), "a <1>\na -\na <3>\n");
  field.width = 4;
  EXPECT_EQ(one(field, 3), "a  <1>\na    -\na  <3>\n");
  field.right = true;
  EXPECT_EQ(one(field, 3), "a <1> \na -   \na <3> \n");
  EXPECT_EQ(written({{field}, 3, {}, true}), "a <1>\na -\na <3>\n");
}

TEST(Fields, WriteLabelsAndTexts) {
  constexpr std::array<std::uint16_t, 3> kValues = {1, 0, 700};
  constexpr std::string_view kLong = "a label that is longer than the bytes that are copied at once";
  LabelField labels{cells(kValues), {}};
  for (const std::string_view text : {std::string_view("zero"), kLong, std::string_view("more")})
    labels.labels.emplace_back(text);
  Field field;
  field.value = std::move(labels);
  EXPECT_EQ(one(field, 3), std::string(kLong).append("\nzero\nmore\n"));
  field.value = TextField{{"a", "", "c"}};
  EXPECT_EQ(one(field, 3), "a\n\nc\n");
}

// Numbers that are those of the row before are copied. Lines must be those of rows that are written one by
// one.
TEST(Fields, RepeatValuesOfTheRowBefore) {
  constexpr std::size_t kRows = 20'000;
  std::vector<std::uint64_t> slow(kRows);
  std::vector<std::uint32_t> quick(kRows);
  const auto known = std::make_unique<bool[]>(kRows);
  const auto shown = std::make_unique<bool[]>(kRows);
  for (std::size_t row = 0; row < kRows; ++row) {
    slow[row] = row / 7 * 1'000'003;
    quick[row] = static_cast<std::uint32_t>(row * row % 11 / 5);
    known[row] = row % 13 < 9;
    shown[row] = row % 17 != 3;
  }
  const auto fields = [&](std::size_t first, std::size_t rows) {
    const auto slow_cells = std::span<const std::uint64_t>(slow).subspan(first, rows);
    const auto quick_cells = std::span<const std::uint32_t>(quick).subspan(first, rows);
    Field name = number(slow_cells, Number::HEX);
    name.first = PaddedText("{\"a long name of a member\": ");
    name.known = {known.get() + first, rows};
    name.unknown = PaddedText("null");
    Field middle = number(quick_cells, Number::DECIMAL);
    middle.first = PaddedText(", ");
    Field last = number(slow_cells, Number::DECIMAL);
    last.before = PaddedText("  ");
    last.known = name.known;
    return std::vector<Field>{name, middle, name, last};
  };
  for (const bool strip : {false, true}) {
    std::string expected;
    for (std::size_t row = 0; row < kRows; ++row) {
      if (shown[row]) expected += written({fields(row, 1), 1, {}, strip});
    }
    EXPECT_EQ(written({fields(0, kRows), kRows, {shown.get(), kRows}, strip}), expected);
  }
}

TEST(Fields, WritePacketsAsPtdumpDoes) {
  using packet::PacketKind;
  constexpr std::array<std::uint8_t, 3> kKinds = {static_cast<std::uint8_t>(PacketKind::TIP_PGE),
                                                  static_cast<std::uint8_t>(PacketKind::PSB),
                                                  static_cast<std::uint8_t>(PacketKind::PIP)};
  constexpr std::array<std::uint64_t, 3> kPayload = {0x401000, 0, 0xafa0};
  constexpr std::array<std::uint64_t, 3> kPayload2 = {2, 0, 0};
  constexpr std::array<std::uint8_t, 3> kFlags = {0, 0, packet::Packet::NR};
  Field field;
  field.value = PacketField{kKinds, kPayload, kPayload2, kFlags};
  EXPECT_EQ(
      one(field, 3),
      "tip.pge    2: ????????00401000\npsb\npip        afa0, nr                 cr3 000000000000afa0\n");
}

TEST(Fields, WriteNotesBeforeRows) {
  constexpr std::array<std::uint8_t, 3> kValues = {1, 2, 3};
  constexpr std::array<bool, 3> kShown = {true, false, true};
  const Lines lines{{number(cells(kValues), Number::DECIMAL)}, 3, {}, true};
  EXPECT_EQ(written(lines, {{0, "a"}, {0, "b"}, {2, "c"}, {3, "d"}}), "a\nb\n1\n2\nc\n3\nd\n");
  EXPECT_EQ(written({lines.fields, 3, kShown, true}, {{1, "a"}, {2, "b"}}), "1\na\nb\n3\n");
  EXPECT_EQ(written({{}, 0, {}, true}, {{0, "a"}}), "a\n");
}

// Columns with few different values, so that rows share texts.
struct Columns {
  static constexpr std::size_t kRows = 1000;
  std::array<std::uint64_t, kRows> wide{};
  std::array<std::uint64_t, kRows> other{};
  std::array<std::uint8_t, kRows> narrow{};
  std::array<std::int32_t, kRows> negative{};
  std::array<bool, kRows> known{};

  Columns() {
    for (std::size_t row = 0; row < kRows; ++row) {
      wide[row] = row * row % 7;
      other[row] = ~(row % 5);
      narrow[row] = static_cast<std::uint8_t>(row % 3);
      negative[row] = static_cast<std::int32_t>(row % 2) - 1;
      known[row] = row % 11 != 0;
    }
  }
  // All of it depends on values, but for the last field.
  [[nodiscard]] std::vector<Field> fields(const std::string& before) const {
    std::vector<Field> all = {number(cells(wide), Number::HEX16), number(cells(narrow), Number::DECIMAL),
                              number(cells(negative), Number::DECIMAL), number(cells(other), Number::HEX)};
    all[0].known = known;
    all[0].unknown = PaddedText("?");
    all[0].before = PaddedText(before);
    all[1].first = PaddedText(", ");
    all[1].width = 4;
    LabelField label{cells(narrow), {}};
    for (const char* text : {"", "one", "two"}) label.labels.emplace_back(text);
    all.push_back(all[0]);
    all.back().value = label;
    all.push_back(number(cells(other), Number::DECIMAL));
    return all;
  }
};

TEST(Fields, WriteGroupsAsTheirFields) {
  const auto columns = std::make_unique<Columns>();
  KeptTexts texts;
  // The same texts again, then others.
  for (const char* before : {"<", "<", "0x"}) {
    const Lines lines{columns->fields(before), Columns::kRows, {}, true, {}};
    Lines grouped = lines;
    grouped.groups = {{1, 5, &texts}};
    EXPECT_EQ(written(grouped), written(lines));
    EXPECT_FALSE(texts.layout.empty());
    grouped.groups = {{0, 5, &texts}};
    EXPECT_EQ(written(grouped), written(lines));
  }
}

TEST(Fields, WriteGroupsOfTooManyBitsFieldByField) {
  const auto columns = std::make_unique<Columns>();
  std::array<std::uint64_t, Columns::kRows> third = columns->wide;
  std::vector<Field> fields = columns->fields("");
  fields.push_back(number(cells(third), Number::DECIMAL));
  const Lines lines{fields, Columns::kRows, {}, false, {}};
  KeptTexts texts;
  Lines grouped = lines;
  grouped.groups = {{0, fields.size(), &texts}};
  EXPECT_EQ(written(grouped), written(lines));
  EXPECT_TRUE(texts.layout.empty());
}

}  // namespace
}  // namespace ptkit::tables::text
