#include "formats/common/json.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/shortened.h"

namespace ptkit::formats {

namespace {

// SAX handler that finds the offset of the first syntax error. It is used after parsing has failed.
struct ErrorPosition : nlohmann::json_sax<Json> {
  std::size_t position = 0;
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return true; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t at, const std::string&, const nlohmann::detail::exception&) override {
    position = at;
    return false;
  }
};

std::string shown(const Json& value) {
  if (value.is_structured()) return value.is_array() ? "an array" : "an object";  // dump() would recurse
  const std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  return std::string(value.type_name()) + " " + base::shortened(text);
}

}  // namespace

std::size_t find_json_too_deep(base::Bytes text) noexcept {
  const auto opens = [](std::uint8_t byte) { return byte == '[' || byte == '{'; };
  // Most documents have fewer brackets than the nesting limit. A loop without branches counts them.
  if (static_cast<std::size_t>(std::count_if(text.begin(), text.end(), opens)) <= kMostJsonLevels)
    return text.size();
  std::size_t levels = 0;
  bool in_text = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::uint8_t byte = text[i];
    if (in_text && byte == '\\') {
      ++i;
    } else if (byte == '"') {
      in_text = !in_text;
    } else if (!in_text && opens(byte)) {
      if (++levels > kMostJsonLevels) return i;
    } else if (!in_text && (byte == ']' || byte == '}')) {
      levels -= levels != 0 ? 1U : 0U;
    }
  }
  return text.size();
}

base::Result<Json> parse_json(const std::string& source, base::Bytes text) {
  if (const std::size_t at = find_json_too_deep(text); at != text.size()) {
    return base::Failure{base::Status::BAD_FILE, at,
                         source + ": the JSON has more than " + std::to_string(kMostJsonLevels) +
                             " nested arrays and objects; no recorder writes that"};
  }
  Json document = Json::parse(text.begin(), text.end(), nullptr, false);
  if (!document.is_discarded()) return document;
  ErrorPosition error;
  static_cast<void>(Json::sax_parse(text.begin(), text.end(), &error));
  return base::Failure{
      base::Status::BAD_FILE, error.position,
      source + ": expected JSON, found something else at byte " + std::to_string(error.position)};
}

JsonReader::Member JsonReader::Member::operator[](const char* name) const {
  const std::string path = path_.empty() ? name : path_ + "." + name;
  if (value_ == nullptr || !value_->is_object()) return {reader_, nullptr, path};
  const auto found = value_->find(name);
  return {reader_, found == value_->end() ? nullptr : &*found, path};
}

std::size_t JsonReader::Member::size() const {
  if (value_ != nullptr && value_->is_array()) return value_->size();
  fail_kind("an array");
  return 0;
}

JsonReader::Member JsonReader::Member::at(std::size_t index) const {
  const std::string path = path_ + "[" + std::to_string(index) + "]";
  if (value_ == nullptr || !value_->is_array() || index >= value_->size()) return {reader_, nullptr, path};
  return {reader_, &(*value_)[index], path};
}

std::string JsonReader::Member::text() const {
  if (value_ != nullptr && value_->is_string()) return value_->get<std::string>();
  fail_kind("text");
  return {};
}

std::uint64_t JsonReader::Member::number(std::uint64_t limit) const {
  if (value_ == nullptr || !value_->is_number_unsigned()) {
    fail_kind("a number");
    return 0;
  }
  const auto value = value_->get<std::uint64_t>();
  if (value <= limit) return value;
  fail("expected at most " + std::to_string(limit) + ", found " + std::to_string(value));
  return 0;
}

std::int64_t JsonReader::Member::signed_number() const {
  if (value_ != nullptr && value_->is_number_integer() &&
      (!value_->is_number_unsigned() ||
       value_->get<std::uint64_t>() <=
           static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))) {
    return value_->get<std::int64_t>();
  }
  fail_kind("a number of 63 bits");
  return 0;
}

std::uint64_t JsonReader::Member::wide_number() const {
  if (value_ == nullptr || !value_->is_string()) return number();
  const std::string text = value_->get<std::string>();
  const bool hex = text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data() + (hex ? 2 : 0), end, value, hex ? 16 : 10);
  if (result.ec != std::errc{} || result.ptr != end)
    fail_kind("a number, or text with a decimal or 0x number");
  return value;
}

bool JsonReader::Member::flag(bool fallback) const {
  if (!present()) return fallback;
  if (value_->is_boolean()) return value_->get<bool>();
  fail_kind("true or false");
  return fallback;
}

void JsonReader::Member::expect_object() const {
  if (value_ == nullptr || !value_->is_object()) fail_kind("an object");
}

void JsonReader::Member::fail_kind(const char* expected) const {
  fail(std::string("expected ") + expected + ", found " +
       (value_ == nullptr ? std::string("nothing: the member is missing") : shown(*value_)));
}

void JsonReader::Member::fail(const std::string& what) const {
  if (reader_->failure_) return;
  reader_->failure_ =
      base::Failure{base::Status::BAD_FILE, 0,
                    reader_->source_ + ": " + (path_.empty() ? "the document" : path_) + ": " + what};
}

}  // namespace ptkit::formats
