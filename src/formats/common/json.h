// Reads JSON documents. Every failure names the member ("processes[0].threads[1].tid") and the value that was
// found. For .cpp files of formats only: the JSON library does not appear in interfaces.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/status.h"

namespace ptkit::formats {

using Json = nlohmann::json;

// Limit of nested arrays and objects: the JSON library copies and writes documents by recursion.
inline constexpr std::size_t kMostJsonLevels = 100;

// Returns the offset of the first bracket that exceeds the nesting limit, or text.size(). The text may be no
// JSON.
[[nodiscard]] std::size_t find_json_too_deep(base::Bytes text) noexcept;
// BAD_FILE carries the offset at which the text stops being JSON or exceeds the nesting limit.
[[nodiscard]] base::Result<Json> parse_json(const std::string& source, base::Bytes text);

// Reads typed members and keeps the first failure. After a failure every read returns a default, so that a
// caller reads all members and checks failure() once.
class JsonReader {
 public:
  explicit JsonReader(std::string source) : source_(std::move(source)) {}

  class Member {
   public:
    Member(JsonReader* reader, const Json* value, std::string path)
        : reader_(reader), value_(value), path_(std::move(path)) {}

    [[nodiscard]] bool present() const { return value_ != nullptr && !value_->is_null(); }
    [[nodiscard]] const std::string& path() const { return path_; }
    // A missing member is returned as not present().
    [[nodiscard]] Member operator[](const char* name) const;
    [[nodiscard]] std::size_t size() const;  // elements of an array; any other type is a failure
    [[nodiscard]] Member at(std::size_t index) const;

    // Required values: a failure if the member is absent or has another type.
    [[nodiscard]] std::string text() const;
    [[nodiscard]] std::uint64_t number(std::uint64_t limit = ~std::uint64_t{0}) const;
    [[nodiscard]] std::int64_t signed_number() const;
    [[nodiscard]] std::uint64_t wide_number() const;  // a JSON number, or text with a decimal or 0x number
    [[nodiscard]] bool flag(bool fallback) const;     // returns `fallback` if absent
    void expect_object() const;
    void fail(const std::string& what) const;

   private:
    void fail_kind(const char* expected) const;
    JsonReader* reader_;
    const Json* value_;
    std::string path_;
  };

  [[nodiscard]] Member root(const Json& value) { return {this, &value, ""}; }
  [[nodiscard]] const std::optional<base::Failure>& failure() const { return failure_; }

 private:
  std::string source_;
  std::optional<base::Failure> failure_;
};

}  // namespace ptkit::formats
