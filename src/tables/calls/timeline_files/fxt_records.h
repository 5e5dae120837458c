// Records of the Fuchsia trace format: words of 8 bytes.
// https://fuchsia.dev/fuchsia-src/reference/tracing/trace-format
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tables/calls/timeline_files/timeline_files.h"

namespace ptkit::tables::calls {

// Bytes of a string in a record; the field has 15 bits, and readers take 32,000.
inline constexpr std::size_t kMostFxtString = 32'000;
// References to strings have 15 bits; 0 is the empty string.
inline constexpr std::size_t kMostFxtStrings = 0x7fff;

// The begin of a text of UTF-8, with whole characters.
[[nodiscard]] std::string_view cut_text(std::string_view text, std::size_t most) noexcept;

// A record in memory: its size is in its first word.
class FxtRecord {
 public:
  void begin(std::uint64_t header) {
    words_.clear();
    words_.push_back(header);
  }
  void word(std::uint64_t value) { words_.push_back(value); }
  void text(std::string_view text);
  void integer(std::uint16_t name, std::uint64_t value);
  void real(std::uint16_t name, double value);
  void string(std::uint16_t name, std::uint16_t value);
  void boolean(std::uint16_t name, bool value);
  void koid(std::uint16_t name, std::uint64_t value);
  // Counts arguments in the bits from `shift` on.
  void put(ByteSink& sink, unsigned shift);

 private:
  std::vector<std::uint64_t> words_;
  std::uint64_t arguments_ = 0;
};

enum class FxtEvent : std::uint8_t { INSTANT = 0, COUNTER = 1, BEGIN = 2, END = 3 };

// Writes records. Strings have references: some keep theirs, those of the others are used again when all are
// in use.
class FxtRecords {
 public:
  // References to `kept` are 1, 2, ... Others have keys below `keys`. At most `most_strings` have references
  // at a time.
  FxtRecords(ByteSink& sink, std::vector<std::string_view> kept, std::size_t keys,
             std::size_t most_strings = kMostFxtStrings);

  // The begin of a file with times in nanoseconds.
  void put_head(std::string_view writer);
  // The reference to a string. It holds until kHeld more were made.
  static constexpr std::size_t kHeld = 8;
  [[nodiscard]] std::uint16_t string(std::size_t key, std::string_view text) {
    const std::uint16_t found = reference_[key];
    return found != 0 && !is_reused_soon(found) ? found : add_string(key, text);
  }
  // Of a key that may have had another string.
  [[nodiscard]] std::uint16_t another(std::size_t key, std::string_view text) {
    return add_string(key, text);
  }
  void put_log(std::string_view text);
  void put_process(std::uint64_t pid, std::uint16_t name);
  // `process`: reference to the argument's name.
  void put_thread(std::uint64_t pid, std::uint64_t tid, std::uint16_t name, std::uint16_t process);
  // Later events are of this thread.
  void set_thread(std::uint64_t pid, std::uint64_t tid);
  // Begins an event. Arguments follow, then put_event().
  [[nodiscard]] FxtRecord& event(FxtEvent type, std::uint64_t ns, std::uint16_t category, std::uint16_t name);
  void put_event() { record_.put(sink_, kEventArguments); }

 private:
  static constexpr unsigned kEventArguments = 20;

  [[nodiscard]] bool is_reused_soon(std::size_t reference) const noexcept {
    if (made_ < most_made_) return false;
    const std::size_t at = reference - kept_.size() - 1;
    return (at + most_made_ - made_ % most_made_) % most_made_ < kHeld;
  }
  [[nodiscard]] std::uint16_t add_string(std::size_t key, std::string_view text);
  void put_string(std::size_t reference, std::string_view text);

  ByteSink& sink_;
  std::vector<std::string_view> kept_;
  std::size_t most_made_;                 // references of strings that do not keep theirs
  std::size_t made_ = 0;                  // so far
  std::vector<std::uint16_t> reference_;  // by key; 0: none
  std::vector<std::size_t> owner_;        // keys of the references that were made
  std::uint8_t thread_ = 0;
  FxtRecord record_;
};

}  // namespace ptkit::tables::calls
