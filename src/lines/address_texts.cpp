#include "lines/address_texts.h"

#include <array>

#include "lines/escape.h"

namespace ptkit::lines {
namespace {

using image::CodeView;
using symbol::RowAddresses;
using symbol::RowTimes;

constexpr std::string_view kUnknown = "????????????????";
constexpr std::string_view kNull = "null";
constexpr std::size_t kDisassemblyWidth = 44;

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
  std::string name;
  if (symbol) {
    name = name_of(*symbol, ip);
  } else if (module != nullptr) {
    const trace::CodeRegion& region = code_.image.bundle().code[static_cast<std::size_t>(from.region)];
    const std::uint64_t in_module =
        code_.loads != nullptr ? code_.loads->rva(from.region, ip) : ip - region.address + region.file_offset;
    name = with_offset('[' + for_terminal(*module) + ']', in_module);
  }
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

InstructionTexts::InstructionTexts(const Code& code, bool json)
    : code_(code), json_(json), views_(code.image), last_views_(code.image) {}

std::string InstructionTexts::name(const CodeView& view, std::uint64_t ip) {
  if (symbol::maps(view, ip)) {
    if (const auto found = code_.symbols.find(view.space(), view.valid_from(), ip))
      return name_of(*found, ip);
  }
  const RowTimes last{symbol::kLastTime, symbol::kLastTime, true};
  const CodeView* const other = last_views_.with_code(last_views_.at(view.space(), last.first), last, ip);
  if (other == nullptr) return {};
  const auto found = code_.symbols.find(other->space(), other->valid_from(), ip);
  return found ? name_of(*found, ip) : std::string();
}

std::string InstructionTexts::text(const CodeView& view, std::uint64_t ip, std::uint8_t size,
                                   std::uint8_t mode) {
  std::array<std::uint8_t, 15> bytes{};
  const std::size_t count = view.read(ip, std::span(bytes).first(std::min<std::size_t>(size, bytes.size())));
  const std::string disassembly = insn::disassemble(static_cast<insn::ExecMode>(mode),
                                                    base::Bytes(bytes).first(count), ip, code_.cs_base);
  if (json_) return for_json(disassembly);
  std::string text = digits16(ip) + "  " + disassembly;
  const std::string symbol = name(view, ip);
  if (symbol.empty()) return text;
  if (disassembly.size() < kDisassemblyWidth) text.append(kDisassemblyWidth - disassembly.size(), ' ');
  return text + ' ' + symbol;
}

TextCache::Ref InstructionTexts::make(const TextCache::Key& key, const CodeView& view, std::uint64_t ip,
                                      std::uint8_t size, std::uint8_t mode) {
  cache_.reserve();
  const std::int32_t region = view.provenance(ip).region;
  const bool whole = region >= 0 && view.provenance(ip + size - 1).region == region;
  const TextCache::Key same{ip, std::uint64_t{view.space()} << 32U | static_cast<std::uint32_t>(region),
                            key.more};
  const TextCache::Ref* const found = whole ? cache_.find(same) : nullptr;
  const TextCache::Ref ref = found != nullptr ? *found : cache_.store(text(view, ip, size, mode));
  if (whole && found == nullptr) cache_.insert(same, ref);
  cache_.insert(key, ref);
  return ref;
}

}  // namespace ptkit::lines
