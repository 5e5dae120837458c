// Serializes fields of fixed width, little-endian, without padding. One description writes and reads them.
#pragma once

#include <bit>
#include <cmath>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/bytes.h"

namespace ptkit::base {

template <typename T>
void append_le(std::vector<std::uint8_t>& out, T value) {
  static_assert(std::is_integral_v<T>);
  for (std::size_t i = 0; i < sizeof(T); ++i)
    out.push_back(static_cast<std::uint8_t>(static_cast<std::uint64_t>(value) >> (8 * i)));
}

class FieldWriter {
 public:
  template <typename T>
  void operator()(T value) {
    if constexpr (std::is_enum_v<T>) {
      (*this)(static_cast<std::underlying_type_t<T>>(value));
    } else if constexpr (std::is_same_v<T, bool>) {
      bytes_.push_back(value ? 1 : 0);
    } else if constexpr (std::is_same_v<T, double>) {
      (*this)(std::bit_cast<std::uint64_t>(value));
    } else {
      append_le(bytes_, value);
    }
  }
  template <typename T>
  void operator()(T value, std::type_identity_t<T>) {
    (*this)(value);
  }

  void text(const std::string& value) {
    (*this)(static_cast<std::uint64_t>(value.size()));
    bytes_.insert(bytes_.end(), value.begin(), value.end());
  }

  [[nodiscard]] std::vector<std::uint8_t>& bytes() noexcept { return bytes_; }

 private:
  std::vector<std::uint8_t> bytes_;
};

// Reads fields with bounds checks. A missing field or a value out of range makes good() false and leaves the
// target unchanged.
class FieldReader {
 public:
  explicit FieldReader(Bytes bytes) noexcept : rest_(bytes) {}

  template <typename T>
  void operator()(T& value) noexcept {
    if constexpr (std::is_enum_v<T>) {
      auto number = static_cast<std::underlying_type_t<T>>(value);
      (*this)(number);
      value = static_cast<T>(number);
    } else if constexpr (std::is_same_v<T, bool>) {
      std::uint8_t number = value ? 1 : 0;
      (*this)(number, 1);
      value = number != 0;
    } else if constexpr (std::is_same_v<T, double>) {
      auto bits = std::bit_cast<std::uint64_t>(value);
      (*this)(bits);
      if (std::isnan(std::bit_cast<double>(bits))) good_ = false;
      if (good_) value = std::bit_cast<double>(bits);
    } else {
      static_assert(std::is_integral_v<T>);
      if (rest_.size() < sizeof(T)) good_ = false;
      if (!good_) return;
      value = static_cast<T>(load_le<sizeof(T)>(rest_.data()));
      rest_ = rest_.subspan(sizeof(T));
    }
  }
  // At most `last`.
  template <typename T>
  void operator()(T& value, std::type_identity_t<T> last) noexcept {
    T read = value;
    (*this)(read);
    if (read > last) good_ = false;
    if (good_) value = read;
  }

  void text(std::string& value) {
    std::uint64_t size = 0;
    (*this)(size, rest_.size());
    if (size > rest_.size()) good_ = false;
    if (!good_) return;
    value.assign(rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(size));
    rest_ = rest_.subspan(static_cast<std::size_t>(size));
  }

  [[nodiscard]] bool good() const noexcept { return good_; }
  void fail() noexcept { good_ = false; }
  [[nodiscard]] Bytes rest() const noexcept { return rest_; }

 private:
  Bytes rest_;
  bool good_ = true;
};

// An optional value. `describe` visits its fields.
template <typename Fields, typename T, typename Describe>
void optional_fields(Fields& fields, std::optional<T>& value, const Describe& describe) {
  bool there = value.has_value();
  fields(there);
  if (!there) {
    value.reset();
    return;
  }
  if (!value) value.emplace();
  describe(*value);
}

// A list with its count. `describe` visits the fields of a value: at least one byte.
template <typename T, typename Describe>
void list_fields(FieldWriter& fields, std::vector<T>& values, const Describe& describe) {
  fields(static_cast<std::uint64_t>(values.size()));
  for (T& value : values) describe(value);
}
template <typename T, typename Describe>
void list_fields(FieldReader& fields, std::vector<T>& values, const Describe& describe) {
  std::uint64_t count = 0;
  fields(count);
  values.clear();
  for (std::uint64_t i = 0; i < count && fields.good(); ++i) describe(values.emplace_back());
}

}  // namespace ptkit::base
