// Maps with segments and "Publics by Value": of IDA, of Microsoft's linker (/MAP), of Delphi.
//
//   Preferred load address is 0000000140000000                                  (linkers)
//   Start         Length     Name                   Class
//   0001:00000000 00001000H  .text                  CODE
//    Address         Publics by Value              Rva+Base       Lib:Object    (IDA: no third column)
//   0001:00000010       main                       0000000140001010 f main.obj
#include <algorithm>
#include <map>

#include "formats/symbols/readers.h"
#include "formats/symbols/text.h"

namespace ptkit::formats::symbols {
namespace {

constexpr std::uint64_t kSectionAlignment = 0x1000;
constexpr std::uint64_t kBaseAlignment = 0x10000;  // of Windows' images

struct Place {
  std::uint64_t segment = 0;
  std::uint64_t offset = 0;
};

std::optional<Place> place_of(std::string_view word) noexcept {
  const std::size_t colon = word.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto segment = hex_number(word.substr(0, colon));
  const auto offset = hex_number(word.substr(colon + 1));
  if (!segment || !offset || *segment > 0xFFFF) return std::nullopt;
  return Place{*segment, *offset};
}

struct Segment {
  std::string name;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool has_code = false;
  std::uint64_t address = 0;  // of offset 0, where the segment does not say where it begins
};

class SegmentMap {
 public:
  ReadList read(std::string_view text) {
    while (!text.empty()) read_line(take_line(text));
    if (!has_segments_ || !has_symbols_) return {};
    lay_out();
    for (const auto& [place, name, address] : publics_) add(place, name, address);
    if (list_.symbols.empty()) return {std::nullopt, "is " + list_.kind + " without a function"};
    return {std::move(list_), {}};
  }

 private:
  struct Public {
    Place place;
    std::string_view name;
    std::optional<std::uint64_t> address;  // Rva+Base
  };

  void read_line(std::string_view line) {
    const std::string_view all = trim(line);
    constexpr std::string_view kBase = "Preferred load address is ";
    if (all.starts_with(kBase)) list_.linked_base = hex_number(trim(all.substr(kBase.size())));
    if (all.starts_with("Start ") && all.find("Class") != std::string_view::npos) {
      has_segments_ = true;
      is_in_publics_ = false;
      return;
    }
    if (all.starts_with("Address ") && all.find("Publics by ") != std::string_view::npos) {
      is_in_publics_ = all.find("Publics by Value") != std::string_view::npos;
      has_symbols_ = has_symbols_ || is_in_publics_;
      has_addresses_ = all.find("Rva+Base") != std::string_view::npos;
      return;
    }
    const auto place = place_of(take_word(line));
    if (!place) {
      if (!has_segments_ && list_.module.empty()) list_.module = first_line(all);
      return;
    }
    if (is_in_publics_) return read_public(*place, line);
    if (has_segments_ && !has_symbols_) read_segment(*place, line);
  }

  // Microsoft's linker begins with the name of the module, alone on its line.
  static std::string first_line(std::string_view line) {
    return line.find_first_of(kBlanks) == std::string_view::npos ? std::string(line) : std::string();
  }

  void read_segment(Place place, std::string_view line) {
    std::string_view length = take_word(line);
    if (length.ends_with('H')) length.remove_suffix(1);
    const auto size = hex_number(length);
    const std::string_view name = take_word(line);
    if (!size || *size > ~place.offset) return;
    const auto [at, is_new] = segments_.try_emplace(place.segment);
    Segment& segment = at->second;
    if (is_new) segment = {std::string(name), place.offset, place.offset, false, 0};
    segment.begin = std::min(segment.begin, place.offset);
    segment.end = std::max(segment.end, place.offset + *size);
    segment.has_code = segment.has_code || line.find("CODE") != std::string_view::npos;
  }

  void read_public(Place place, std::string_view line) {
    if (place.segment == 0) return;  // constants
    const std::string_view name = take_word(line);
    if (name.empty()) return;
    std::optional<std::uint64_t> address;
    if (has_addresses_) address = hex_number(take_word(line));
    publics_.push_back({place, name, address});
  }

  // Where the map has neither addresses nor begins of segments, segments are taken to lie one after the
  // other, as linkers place them; place.h puts them right if the image is known.
  void lay_out() {
    std::uint64_t next = kSectionAlignment;
    std::uint64_t lowest = ~std::uint64_t{0};
    const bool has_begins =
        std::ranges::any_of(segments_, [](const auto& one) { return one.second.begin != 0; });
    for (auto& [number, segment] : segments_) {
      lowest = std::min(lowest, segment.begin);
      if (has_begins) continue;
      segment.address = next;
      if (segment.end > ~next - kSectionAlignment) return;
      next = (next + segment.end + kSectionAlignment - 1) / kSectionAlignment * kSectionAlignment;
    }
    const bool is_of_linker = list_.linked_base.has_value();
    list_.kind = is_of_linker ? "map of a linker" : "map of IDA or Delphi";
    if (has_begins && !is_of_linker) list_.linked_base = lowest / kBaseAlignment * kBaseAlignment;
    if (has_begins || has_addresses_) return;
    list_.linked_base = 0;
    for (const auto& [number, segment] : segments_)
      list_.segments.push_back({segment.name, segment.address, segment.end});
  }

  void add(Place place, std::string_view name, std::optional<std::uint64_t> address) {
    const auto found = segments_.find(place.segment);
    if (found == segments_.end() || !found->second.has_code) return;
    const Segment& segment = found->second;
    if (!address) {
      // IDA's offsets may be addresses, Delphi's count from the begin of the segment.
      const bool is_address = segment.begin != 0 && place.offset >= segment.begin;
      address = place.offset + (is_address ? 0 : segment.begin + segment.address);
    }
    list_.symbols.push_back({std::string(name), *address, 0});
  }

  SymbolList list_;
  std::map<std::uint64_t, Segment> segments_;
  std::vector<Public> publics_;
  bool has_segments_ = false;
  bool has_symbols_ = false;
  bool has_addresses_ = false;
  bool is_in_publics_ = false;
};

}  // namespace

ReadList read_segment_map(std::string_view text) { return SegmentMap().read(text); }

}  // namespace ptkit::formats::symbols
