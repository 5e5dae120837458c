#include "lines/address_texts.h"

#include <algorithm>
#include <array>
#include <optional>

#include "lines/escape.h"

namespace ptkit::lines {
namespace {

using image::CodeView;
using symbol::RowAddresses;
using symbol::RowTimes;

constexpr std::string_view kUnknown = "????????????????";
constexpr std::string_view kNull = "null";
constexpr std::size_t kDisassemblyWidth = 44;
constexpr std::size_t kBytesWidth = 24;  // of most instructions; longer ones move what follows

std::string digits16(std::uint64_t value) {
  std::array<char, 16> text;
  return {text.data(), base::put_hex16(text.data(), value)};
}

std::string with_offset(std::string name, std::uint64_t offset) {
  std::array<char, base::kMostDigits> text;
  return name.append("+0x").append(text.data(), base::put_hex(text.data(), offset));
}

std::string name_of(const symbol::Symbol& symbol, std::uint64_t ip) {
  std::string name = for_terminal(symbol.name);
  return ip == symbol.address ? name : with_offset(std::move(name), ip - symbol.address);
}

// The place in a module that has no symbol there, or nothing.
std::string place_in_module(const Code& code, const image::Provenance& from, std::uint64_t ip) {
  if (from.file < 0) return {};
  const trace::CodeRegion& region = code.image.bundle().code[static_cast<std::size_t>(from.region)];
  const std::uint64_t place =
      code.loads != nullptr ? code.loads->rva(from.region, ip) : ip - region.address + region.file_offset;
  return with_offset('[' + for_terminal(code.modules[static_cast<std::size_t>(from.file)]) + ']', place);
}

std::string digits_of(base::Bytes bytes, std::string_view between) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : bytes) {
    if (!text.empty()) text += between;
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 0xfU];
  }
  return text;
}

// Pads to so many characters of UTF-8.
void pad(std::string& text, std::size_t width) {
  const auto begins = [](char byte) { return (static_cast<unsigned char>(byte) & 0xc0U) != 0x80; };
  const auto characters = static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins));
  if (characters < width) text.append(width - characters, ' ');
}

}  // namespace

AddressTexts::AddressTexts(const Code& code, Style style, std::string_view end)
    : code_(code), style_(style), end_(end), views_(code.image) {
  if (style == Style::PLACE) unknown_ = PaddedText(kUnknown);
  if (style == Style::JSON) unknown_ = PaddedText(json(kNull, kNull, kNull));
}

std::string AddressTexts::json(std::string_view ip, std::string_view symbol, std::string_view module) const {
  std::string text;
  for (const auto& [name, value] : {std::pair{"ip", ip}, {"symbol", symbol}, {"module", module}}) {
    text.append(text.empty() ? "\"" : ", \"").append(end_).append(name).append("\": ").append(value);
  }
  return text;
}

std::string AddressTexts::text(const CodeView* view, std::uint64_t ip) const {
  const auto symbol =
      view != nullptr ? code_.symbols.find(view->space(), view->valid_from(), ip) : std::nullopt;
  const image::Provenance from =
      view != nullptr ? symbol::file_at(code_.image, *view, ip) : image::Provenance{};
  const std::string* const module =
      from.file >= 0 ? &code_.modules[static_cast<std::size_t>(from.file)] : nullptr;
  if (style_ == Style::JSON) {
    std::array<char, base::kMostDigits> digits;
    const std::string address(digits.data(), base::put_hex(digits.data(), ip));
    return json("\"0x" + address + '"', symbol ? for_json(symbol->name) : kNull,
                module != nullptr ? for_json(*module) : kNull);
  }
  const std::string name = symbol ? name_of(*symbol, ip) : place_in_module(code_, from, ip);
  if (style_ == Style::NAME) return name;
  return name.empty() ? digits16(ip) : digits16(ip) + ' ' + name;
}

std::pair<TextCache::Ref, bool> AddressTexts::make(const TextCache::Key& key, const CodeView& first,
                                                   const RowTimes& times, std::uint64_t ip) {
  cache_.reserve();
  const CodeView* const view = views_.with_code(first, times, ip);
  // The code, and the file that a page dump hides, decide the text.
  const std::int32_t region = view != nullptr ? view->provenance(ip).region : -1;
  const std::int32_t of_file = view != nullptr ? symbol::file_at(code_.image, *view, ip).region : -1;
  const TextCache::Key named{ip, static_cast<std::uint32_t>(region), static_cast<std::uint32_t>(of_file)};
  const TextCache::Ref* const found = cache_.find(named);
  const TextCache::Ref ref = found != nullptr ? *found : cache_.store(text(view, ip));
  if (found == nullptr) cache_.insert(named, ref);
  // The view alone decides, unless the row's last time is in another one.
  const bool same = times.backwards || view == &first || symbol::covers(first, times.second);
  if (same) cache_.insert(key, ref);
  return {ref, same};
}

bool AddressTexts::add_pair(TextBuffer& out, const RowAddresses& from, const RowAddresses& to,
                            std::size_t row) {
  const std::size_t begin = out.size();
  out.add("  ");
  const std::size_t first = out.size();
  const bool same_from = add(out, from, row);
  const bool has_first = out.size() != first;
  if (!has_first) out.add('?');
  out.add(" -> ");
  const std::size_t second = out.size();
  const bool same = add(out, to, row) && same_from;
  if (out.size() != second) return same;
  if (has_first) {
    out.add('?');
  } else {
    out.cut(begin);
  }
  return same;
}

InstructionTexts::InstructionTexts(const Code& code, InstructionStyle style)
    : code_(code), style_(style), views_(code.image), last_views_(code.image) {}

std::string InstructionTexts::name(const CodeView& view, std::uint64_t ip) {
  const RowTimes last{symbol::kLastTime, symbol::kLastTime, true};
  const std::array<const CodeView*, 2> views{
      symbol::maps(view, ip) ? &view : nullptr,
      last_views_.with_code(last_views_.at(view.space(), last.first), last, ip)};
  for (const CodeView* const one : views) {
    if (one == nullptr) continue;
    if (const auto found = code_.symbols.find(one->space(), one->valid_from(), ip))
      return name_of(*found, ip);
  }
  for (const CodeView* const one : views) {
    if (one == nullptr) continue;
    std::string place = place_in_module(code_, symbol::file_at(code_.image, *one, ip), ip);
    if (!place.empty()) return place;
  }
  return {};
}

std::string InstructionTexts::text(const CodeView& view, std::uint64_t ip, base::Bytes bytes,
                                   insn::ExecMode mode, const std::uint64_t* target) {
  if (style_ == InstructionStyle::JSON_BYTES) return for_json(digits_of(bytes, ""));
  std::string disassembly = insn::disassemble(mode, bytes, ip, code_.cs_base);
  if (style_ == InstructionStyle::JSON) return for_json(disassembly);
  std::string text = digits16(ip) + "  ";
  if (style_ == InstructionStyle::RAW) {
    const std::size_t begin = text.size();
    text += digits_of(bytes, " ");
    pad(text, begin + kBytesWidth);
    text += ' ';
  }
  const std::string to = target != nullptr ? name(view, *target) : std::string();
  if (!to.empty()) disassembly += " <" + to + '>';
  const std::string symbol = name(view, ip);
  if (symbol.empty()) return text + disassembly;
  pad(disassembly, kDisassemblyWidth);
  return text + disassembly + ' ' + symbol;
}

TextCache::Ref InstructionTexts::make(const TextCache::Key& key, const CodeView& view, std::uint64_t ip,
                                      std::uint8_t size, std::uint8_t mode) {
  cache_.reserve();
  std::array<std::uint8_t, 15> memory{};
  const std::size_t count =
      view.read(ip, std::span(memory).first(std::min<std::size_t>(size, memory.size())));
  const base::Bytes bytes = base::Bytes(memory).first(count);
  const auto exec_mode = static_cast<insn::ExecMode>(mode);
  const std::optional<std::uint64_t> target = insn::direct_target(exec_mode, bytes, ip, code_.cs_base);
  // The region, and the file that a page dump hides, decide the text, if they have all that it is made of.
  const std::int32_t region = view.provenance(ip).region;
  const bool whole = region >= 0 && view.provenance(ip + size - 1).region == region &&
                     (!target || view.provenance(*target).region == region);
  const std::int32_t of_file = symbol::file_at(code_.image, view, ip).region;
  const TextCache::Key same{ip, std::uint64_t{view.space()} << 32U | static_cast<std::uint32_t>(region),
                            key.more | std::uint64_t{static_cast<std::uint32_t>(of_file)} << 16U};
  const TextCache::Ref* const found = whole ? cache_.find(same) : nullptr;
  const TextCache::Ref ref =
      found != nullptr ? *found : cache_.store(text(view, ip, bytes, exec_mode, target ? &*target : nullptr));
  if (whole && found == nullptr) cache_.insert(same, ref);
  cache_.insert(key, ref);
  return ref;
}

}  // namespace ptkit::lines
