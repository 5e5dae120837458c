// Fields of fixed width, little-endian, one behind the other: the same description writes and reads them.
#pragma once

#include <bit>
#include <cmath>
#include <optional>
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

  [[nodiscard]] std::vector<std::uint8_t>& bytes() noexcept { return bytes_; }

 private:
  std::vector<std::uint8_t> bytes_;
};

// Bounded: what is not there, or out of its range, makes good() false, and leaves what was to be read alone.
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

  [[nodiscard]] bool good() const noexcept { return good_; }
  void fail() noexcept { good_ = false; }
  [[nodiscard]] Bytes rest() const noexcept { return rest_; }

 private:
  Bytes rest_;
  bool good_ = true;
};

// A value that may be missing: `describe` says what it consists of.
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

}  // namespace ptkit::base
