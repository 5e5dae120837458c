// Lines of text that arrives in parts, and what is in them. Internal to src/code/source/pdb.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ptkit::code::pdb {

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

// A text that is a number and nothing else, of 32 bits.
[[nodiscard]] std::optional<std::uint32_t> whole_number(std::string_view text, int base) noexcept;

// Takes a word from the begin of a text.
[[nodiscard]] std::string_view take_word(std::string_view& text) noexcept;

// The line that begins a symbol's record: "72 | S_GPROC32 [size = 48] `start`".
struct Record {
  std::uint32_t offset = 0;  // in the symbols of its module
  std::string_view kind;     // "S_GPROC32"; empty: the line begins no record
};
[[nodiscard]] Record record_of(std::string_view line) noexcept;
// Whether records of this kind are functions with a size.
[[nodiscard]] bool is_procedure(std::string_view kind) noexcept;

// The name in a line, which stands between the first and the last backquote, and may have such signs.
[[nodiscard]] std::string_view quoted(std::string_view line) noexcept;

// The path in "/src/a.c (MD5: 1A41...)". Empty: llvm-pdbutil does not know it.
[[nodiscard]] std::string_view path_in(std::string_view line) noexcept;

}  // namespace ptkit::code::pdb
