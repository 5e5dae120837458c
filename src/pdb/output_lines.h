// Lines of text that arrives in parts, and what is in them. Internal to src/pdb.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ptkit::pdb {

class OutputLines {
 public:
  // Gives each line that is complete to `read`, without its end. Lines above 128 KiB, longer than any record
  // of a PDB, are left out.
  template <typename Read>
  void take(std::string_view part, Read&& read) {
    while (!part.empty()) {
      const std::size_t end = part.find('\n');
      if (!is_long_) begun_.append(part.substr(0, end));
      is_long_ = is_long_ || begun_.size() > kLongest;
      if (end == std::string_view::npos) return;
      if (!is_long_) read(std::string_view(begun_));
      begun_.clear();
      is_long_ = false;
      part.remove_prefix(end + 1);
    }
  }

 private:
  static constexpr std::size_t kLongest = std::size_t{128} << 10U;

  std::string begun_;
  bool is_long_ = false;
};

[[nodiscard]] std::string_view trim(std::string_view text) noexcept;

// The number behind `mark`, which ends at a character that is no digit: 43 of "code size = 43".
[[nodiscard]] std::optional<std::uint64_t> number_after(std::string_view line, std::string_view mark,
                                                        int base = 10) noexcept;

}  // namespace ptkit::pdb
