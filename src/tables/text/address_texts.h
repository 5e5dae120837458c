// Texts of rows' addresses with the names of functions and files, and of rows' instructions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "code/image/image.h"
#include "code/insn/insn.h"
#include "code/symbol/load_addresses.h"
#include "code/symbol/row_names.h"
#include "code/symbol/row_views.h"
#include "code/symbol/symbols.h"
#include "tables/text/text_buffer.h"
#include "tables/text/text_cache.h"

namespace ptkit::tables::text {

enum class Style : std::uint8_t {
  NAME,      // "main+0x10", "[gzip]+0x1010" without a symbol, or nothing
  LOCATION,  // the address in 16 digits, and the name
  // Members of a JSON object: "from_ip", "from_symbol", "from_symbol_full", "from_module",
  // "from_module_offset".
  JSON,
};

// Parts that names of addresses are made of.
enum class Names : std::uint8_t {
  SYMBOL,          // "main+0x10"; "[gzip]+0x1010" without a symbol
  RVA,             // "gzip+0x1010"
  RVA_AND_SYMBOL,  // "gzip+0x1010 (main+0x10)"
};

// TextCache::Key::view: views of an address space, and code regions, which have neither bit.
inline constexpr std::uint64_t kView = std::uint64_t{1} << 63U;
inline constexpr std::uint64_t kBackwards = std::uint64_t{1} << 32U;
inline constexpr unsigned kViewBits = 33;

// Code and symbols of a trace. Valid as long as the texts that are made of them.
struct Code {
  const code::image::Image& image;
  const code::symbol::Symbols& symbols;
  const code::symbol::LoadAddresses*
      loads;                         // nullptr: "[gzip]+0x1010" has the offset in the file, not the RVA
  std::vector<std::string> modules;  // by file: its name without folders
  std::uint32_t cs_base = 0;
  Names names = Names::SYMBOL;
  bool short_names = false;  // of functions, where no style has both
  // Texts that are shown for full names then. Names that are not known before are added when a row has them.
  mutable std::map<std::string, std::string, std::less<>> shown;
};

// Names each row's address by the rules of code/symbol/row_names.h. An address is looked up once in each view
// of its space, and named once in each code region.
class AddressTexts {
 public:
  // `end` is what the columns' names begin with: "from_" for "from_ip", or nothing.
  AddressTexts(const Code& code, Style style, std::string_view end);

  // False: another row with the same address and view_key_of() may have another text.
  bool add(TextBuffer& out, const code::symbol::RowAddresses& rows, std::size_t row) {
    if (!rows.is_known(row)) {
      out.add(unknown_);
      return true;
    }
    const std::uint64_t ip = rows.ips[row];
    const code::symbol::RowTimes times = code::symbol::times_of(rows, row);
    const code::image::CodeView& first = views_.at(rows.spaces[row], times.first);
    const TextCache::Key key{ip, kView | view_key(first, times), 0};
    const TextCache::Ref* const found = cache_.find(key);
    const auto [ref, same] = found != nullptr ? std::pair(*found, true) : make(key, first, times, ip);
    out.add_padded(cache_.text_of(ref), ref.size);
    return same;
  }
  // As add(), of branches' targets: one without a symbol has the name of the import slot that the branch
  // reads.
  bool add_target(TextBuffer& out, const code::symbol::RowAddresses& to,
                  const code::symbol::RowAddresses& from, std::size_t row);
  // As Style::NAME: "  a -> b", "?" for one that has no name; nothing if none has one. Returns what add()
  // does.
  bool add_pair(TextBuffer& out, const code::symbol::RowAddresses& from, const code::symbol::RowAddresses& to,
                const code::symbol::RowAddresses& indirect, std::size_t row);
  // Equal for two that write the same texts.
  [[nodiscard]] std::string description() const { return std::to_string(static_cast<int>(style_)) + end_; }
  // Key of the code that the space of a row's addresses has at the row's time: a number of kViewBits.
  [[nodiscard]] std::uint64_t view_key_of(const code::symbol::RowAddresses& rows, std::size_t row) {
    const code::symbol::RowTimes times = code::symbol::times_of(rows, row);
    return view_key(views_.at(rows.spaces[row], times.first), times);
  }

 private:
  [[nodiscard]] static std::uint64_t view_key(const code::image::CodeView& first,
                                              const code::symbol::RowTimes& times) noexcept {
    return first.id() | (times.backwards ? kBackwards : 0);
  }
  [[nodiscard]] std::pair<TextCache::Ref, bool> make(const TextCache::Key& key,
                                                     const code::image::CodeView& first,
                                                     const code::symbol::RowTimes& times, std::uint64_t ip);
  [[nodiscard]] std::string text(const code::image::CodeView& view, std::uint64_t ip,
                                 const std::string& import = {}) const;
  [[nodiscard]] std::string_view import_of(const code::symbol::RowAddresses& from,
                                           const code::symbol::RowAddresses& to, std::size_t row);
  [[nodiscard]] bool has_symbol(const code::symbol::RowAddresses& rows, std::size_t row);
  // An empty `symbol` is not known.
  [[nodiscard]] std::string json(std::string_view ip, std::string_view symbol, std::string_view module,
                                 std::string_view offset) const;

  const Code& code_;
  Style style_;
  std::string end_;
  PaddedText unknown_;  // the text of a row without an address
  code::symbol::RowViews views_;
  bool has_imports_;
  TextCache cache_;
  // A direct-mapped cache of has_symbol().
  struct Target {
    const code::image::CodeView* view = nullptr;
    std::uint64_t ip = 0;
    bool has_symbol = false;
  };
  std::vector<Target> targets_;
};

// Arrays of one length, one element per row.
struct RowInstructions {
  std::span<const std::uint64_t> ips;
  std::span<const std::uint8_t> sizes;
  std::span<const std::uint8_t> modes;
  std::span<const std::uint32_t> spaces;
  std::span<const std::uint64_t> tsc;
  std::span<const bool> time_known;
};

enum class InstructionStyle : std::uint8_t {
  TEXT,       // address, disassembly with the name of a direct branch's target, and name
  RAW,        // the same with the bytes of the instruction
  JSON,       // the disassembly as a string
  JSON_BYTES  // the bytes as a string
};

// Disassembles each row's instruction, as its address space had it at the begin of the row's time interval.
class InstructionTexts {
 public:
  InstructionTexts(const Code& code, InstructionStyle style);

  void add(TextBuffer& out, const RowInstructions& rows, std::size_t row) {
    const std::uint64_t ip = rows.ips[row];
    // The earliest time of a row chose the version of the code when it was decoded.
    const std::uint64_t time = rows.time_known[row] ? std::min(rows.tsc[row], code::symbol::kLastTime) : 0;
    const code::image::CodeView& view = views_.at(rows.spaces[row], time);
    const std::uint64_t more = rows.sizes[row] | std::uint64_t{rows.modes[row]} << 8U;
    const TextCache::Key key{ip, kView | view.id(), more};
    const TextCache::Ref* const found = cache_.find(key);
    const TextCache::Ref ref =
        found != nullptr ? *found : make(key, view, ip, rows.sizes[row], rows.modes[row]);
    out.add_padded(cache_.text_of(ref), ref.size);
  }

 private:
  [[nodiscard]] TextCache::Ref make(const TextCache::Key& key, const code::image::CodeView& view,
                                    std::uint64_t ip, std::uint8_t size, std::uint8_t mode);
  [[nodiscard]] std::string text(const code::image::CodeView& view, std::uint64_t ip, base::Bytes bytes,
                                 code::insn::ExecMode mode, const std::uint64_t* target);
  [[nodiscard]] std::string name(const code::image::CodeView& view, std::uint64_t ip);

  const Code& code_;
  InstructionStyle style_;
  code::symbol::RowViews views_;
  code::symbol::RowViews last_views_;
  TextCache cache_;
};

}  // namespace ptkit::tables::text
