// JSON documents with places: every complaint names the member ("processes[0].threads[1].tid") and what was
// found there. For .cpp files of this folder only: the JSON library does not appear in interfaces.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/status.h"

namespace ptkit::formats {

using Json = nlohmann::json;

// Arrays and objects inside one another. The library copies and writes documents by recursion.
inline constexpr std::size_t kMostJsonLevels = 100;

// The byte that begins one level too many; text.size(): there is none, whether or not the text is JSON.
[[nodiscard]] std::size_t find_json_too_deep(base::Bytes text) noexcept;
// BAD_FILE with the byte at which the text stops being JSON, or has too many levels.
[[nodiscard]] base::Result<Json> parse_json(const std::string& source, base::Bytes text);

// Reads typed members and remembers the first thing that was wrong; after that every read gives a default.
// So a reader asks for all that it wants, then looks at failure() once.
class JsonReader {
 public:
  explicit JsonReader(std::string source) : source_(std::move(source)) {}

  class Member {
   public:
    Member(JsonReader* reader, const Json* value, std::string path)
        : reader_(reader), value_(value), path_(std::move(path)) {}

    [[nodiscard]] bool present() const { return value_ != nullptr && !value_->is_null(); }
    [[nodiscard]] const std::string& path() const { return path_; }
    [[nodiscard]] Member operator[](const char* name) const;  // not present if there is none
    [[nodiscard]] std::size_t size() const;                   // of an array; anything else is a failure
    [[nodiscard]] Member at(std::size_t index) const;

    // Required values: a failure if absent or of another kind.
    [[nodiscard]] std::string text() const;
    [[nodiscard]] std::uint64_t number(std::uint64_t limit = ~std::uint64_t{0}) const;
    [[nodiscard]] std::int64_t signed_number() const;
    [[nodiscard]] std::uint64_t wide_number() const;  // a JSON number, or text with a decimal or 0x number
    [[nodiscard]] bool flag(bool otherwise) const;    // `otherwise` if absent
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
