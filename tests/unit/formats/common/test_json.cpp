// JSON that is refused before the JSON library parses it, and values of a wrong type.
#include <gtest/gtest.h>

#include <string>

#include "formats/common/json.h"
#include "formats/ptk/json.h"

namespace ptkit::formats {
namespace {

base::Bytes as_bytes(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

std::string nested(std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); }

TEST(Json, RefusesTooManyLevels) {
  const std::string most = nested(kMostJsonLevels);
  EXPECT_TRUE(parse_json("a", as_bytes(most)).ok());
  const std::string more = nested(kMostJsonLevels + 1);
  const auto refused = parse_json("a.ptk: META", as_bytes(more));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.failure().status, base::Status::BAD_FILE);
  EXPECT_EQ(refused.failure().offset, kMostJsonLevels);
  EXPECT_EQ(refused.failure().detail,
            "a.ptk: META: the JSON has more than 100 nested arrays and objects; no recorder writes "
            "that");
}

TEST(Json, CountsOpenLevelsOnly) {
  std::string flat = "[";
  for (int i = 0; i < 1000; ++i) flat += "[{}],";
  flat += "0]";
  EXPECT_TRUE(parse_json("a", as_bytes(flat)).ok());
}

TEST(Json, IgnoresBracketsInStrings) {
  const std::string text =
      R"({"\"[": ")" + std::string(500, '[') + R"(\\", "x": ")" + std::string(500, '{') + "\"}";
  EXPECT_EQ(find_json_too_deep(as_bytes(text)), text.size());
  EXPECT_TRUE(parse_json("a", as_bytes(text)).ok());
}

TEST(Json, ScansMalformedTextsToTheirEnd) {
  std::string unended(301, '[');
  unended.front() = '"';
  for (const std::string& text :
       {std::string(200, ']') + std::string(200, '{'), unended, std::string(300, '\\')}) {
    EXPECT_LE(find_json_too_deep(as_bytes(text)), text.size());
    EXPECT_FALSE(parse_json("a", as_bytes(text)).ok());
  }
}

TEST(Json, ChecksTypesOfRecorderMembers) {
  const auto complaint = [](const char* text) {
    const Json meta = Json::parse(text);
    JsonReader reader("a");
    ptk::check_recorder(reader.root(meta));
    return reader.failure() ? reader.failure()->detail : std::string("(none)");
  };
  EXPECT_EQ(complaint(R"({"backend": "step", "command": ["a"], "begin_ns": 1, "exit_status": -1})"),
            "(none)");
  EXPECT_EQ(complaint(R"({"backend": null, "command": null, "begin_ns": null})"), "(none)");
  EXPECT_EQ(complaint(R"({"command": ["a", 2]})"), "a: command[1]: expected text, found number 2");
  EXPECT_EQ(complaint(R"({"end_ns": 9223372036854775808})"),
            "a: end_ns: expected at most 9223372036854775807, found 9223372036854775808");
  EXPECT_EQ(complaint(R"({"redacted": 1})"), "a: redacted: expected true or false, found number 1");
}

}  // namespace
}  // namespace ptkit::formats
