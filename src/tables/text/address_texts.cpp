#include "tables/text/address_texts.h"

#include <algorithm>
#include <array>
#include <optional>

#include "code/image/generated_name.h"
#include "code/symbol/anon_memory.h"
#include "code/symbol/names/short_name.h"
#include "tables/text/escape.h"

namespace ptkit::tables::text {
namespace {

using code::image::CodeView;
using code::symbol::RowAddresses;
using code::symbol::RowTimes;

constexpr std::string_view kUnknown = "????????????????";
constexpr std::string_view kNull = "null";
constexpr std::uint64_t kMostJson = (std::uint64_t{1} << 53U) - 1;  // docs/json.md: of numbers
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

// A short name, if it selects the function: not where it is the whole name of another one.
std::string selecting_name(const Code& code, std::string_view full) {
  std::string name = code::symbol::short_name(full);
  // Whole names with scopes are of C++ and Rust, and have parameters, or no others with the same scopes.
  if (name == full || name.find("::") != std::string::npos) return name;
  const auto found = code.symbols.lookup(name);
  const bool selects = std::ranges::any_of(found, [&](const auto& one) { return one.name == full; });
  return found.empty() || selects ? name : std::string(full);
}

std::string function_name(const Code& code, std::string_view full) {
  if (!code.short_names) return for_terminal(full);
  const auto known = code.shown.find(full);
  if (known != code.shown.end()) return known->second;
  return code.shown.emplace(full, for_terminal(selecting_name(code, full))).first->second;
}

std::string name_of(const Code& code, const code::symbol::Symbol& symbol, std::uint64_t ip) {
  std::string name = function_name(code, symbol.name);
  return ip == symbol.address ? name : with_offset(std::move(name), ip - symbol.address);
}

code::symbol::ModuleOffset module_of(const Code& code, const CodeView& view, std::uint64_t ip) {
  const code::image::Provenance where = code::symbol::file_at(code.image, view, ip);
  return code::symbol::module_of(code.symbols, code.image, code.loads, view, where, ip);
}

std::string module_name(const Code& code, std::int32_t number) {
  if (code::symbol::is_file(code.image, number)) return code.modules[static_cast<std::size_t>(number)];
  const std::size_t files = code.image.bundle().files.size();
  return code.symbols.anon_memory().modules()[static_cast<std::size_t>(number) - files].name();
}

// Module and offset of code, or nothing. Lines of addresses with names alone have none of memory
// without a file: the address says as much.
std::string location_in_module(const Code& code, const CodeView& view, std::uint64_t ip) {
  const auto found = module_of(code, view, ip);
  if (found.number == code::symbol::kNoName) return {};
  const bool is_named = code.names == Names::SYMBOL;
  if (is_named && !code::symbol::is_file(code.image, found.number)) return {};
  std::string name = for_terminal(module_name(code, found.number));
  if (is_named) return code::image::address_in_module(name, found.offset);
  return with_offset(std::move(name), found.offset);
}

// `name` is that of the symbol; either text may be empty.
std::string with_location(const Code& code, const std::string& name, std::string location) {
  if (code.names == Names::SYMBOL) return name.empty() ? location : name;
  if (code.names == Names::RVA || name.empty()) return location;
  return location.empty() ? name : std::move(location) + " (" + name + ')';
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
    : code_(code), style_(style), end_(end), views_(code.image), has_imports_(code.symbols.has_imports()) {
  if (style == Style::LOCATION) unknown_ = PaddedText(kUnknown);
  if (style == Style::JSON) unknown_ = PaddedText(json(kNull, {}, kNull, kNull));
}

std::string AddressTexts::json(std::string_view ip, std::string_view symbol, std::string_view module,
                               std::string_view offset) const {
  const std::string full = symbol.empty() ? std::string(kNull) : for_json(symbol);
  const std::string shorter = symbol.empty() ? full : for_json(code::symbol::short_name(symbol));
  std::string text;
  for (const auto& [name, value] : {std::pair<std::string_view, std::string_view>{"ip", ip},
                                    {"symbol", shorter},
                                    {"symbol_full", full},
                                    {"module", module},
                                    {"module_offset", offset}}) {
    text.append(text.empty() ? "\"" : ", \"").append(end_).append(name).append("\": ").append(value);
  }
  return text;
}

std::string AddressTexts::text(const CodeView& view, std::uint64_t ip, const std::string& import) const {
  const auto symbol = code_.symbols.find(view.space(), view.valid_from(), ip);
  if (style_ == Style::JSON) {
    const auto module = module_of(code_, view, ip);
    const bool known = module.number != code::symbol::kNoName;
    std::array<char, base::kMostDigits> digits;
    const std::string address(digits.data(), base::put_hex(digits.data(), ip));
    return json("\"0x" + address + '"', symbol ? std::string_view(symbol->name) : import,
                known ? for_json(module_name(code_, module.number)) : std::string(kNull),
                known && module.offset <= kMostJson ? std::to_string(module.offset) : std::string(kNull));
  }
  std::string name = symbol ? name_of(code_, *symbol, ip) : function_name(code_, import);
  const bool has_location = code_.names != Names::SYMBOL || name.empty();
  name = with_location(code_, name, has_location ? location_in_module(code_, view, ip) : std::string());
  if (style_ == Style::NAME) return name;
  return name.empty() ? digits16(ip) : digits16(ip) + ' ' + name;
}

std::pair<TextCache::Ref, bool> AddressTexts::make(const TextCache::Key& key, const CodeView& first,
                                                   const RowTimes& times, std::uint64_t ip) {
  cache_.reserve();
  const CodeView* const view = views_.with_code(first, times, ip);
  const CodeView& seen = view != nullptr ? *view : first;
  // The code, the file that a page dump hides, and lists of symbols decide the text.
  const std::int32_t region = seen.provenance(ip).region;
  const std::int32_t of_file = code::symbol::file_at(code_.image, seen, ip).region;
  const std::uint64_t lists = std::uint64_t{code_.symbols.lists_at(seen.space(), seen.valid_from(), ip)}
                              << 32U;
  const TextCache::Key named{ip, static_cast<std::uint32_t>(region),
                             lists | static_cast<std::uint32_t>(of_file)};
  const TextCache::Ref* const found = cache_.find(named);
  const TextCache::Ref ref = found != nullptr ? *found : cache_.store(text(seen, ip));
  if (found == nullptr) cache_.insert(named, ref);
  // The view alone decides, unless the row's last time is in another one.
  const bool same = times.backwards || view == &first || code::symbol::covers(first, times.second);
  if (same) cache_.insert(key, ref);
  return {ref, same};
}

bool AddressTexts::has_symbol(const RowAddresses& rows, std::size_t row) {
  constexpr std::size_t kTargets = std::size_t{1} << 12U;
  if (!rows.is_known(row)) return false;
  const std::uint64_t ip = rows.ips[row];
  const RowTimes times = code::symbol::times_of(rows, row);
  const CodeView& first = views_.at(rows.spaces[row], times.first);
  const CodeView* const found = views_.with_code(first, times, ip);
  const CodeView* const view = found != nullptr ? found : &first;
  if (targets_.empty()) targets_.resize(kTargets);
  Target& target = targets_[(ip ^ ip >> 12U) & (kTargets - 1)];
  if (target.view != view || target.ip != ip)
    target = {view, ip, code_.symbols.find(view->space(), view->valid_from(), ip).has_value()};
  return target.has_symbol;
}

// Of a branch to code without a symbol.
std::string_view AddressTexts::import_of(const RowAddresses& from, const RowAddresses& to, std::size_t row) {
  if (!has_imports_ || !from.is_known(row) || has_symbol(to, row)) return {};
  const std::uint64_t ip = from.ips[row];
  const RowTimes times = code::symbol::times_of(from, row);
  const CodeView* const view = views_.with_code(views_.at(from.spaces[row], times.first), times, ip);
  return view == nullptr ? std::string_view{}
                         : code_.symbols.import_at(view->space(), view->valid_from(), ip).name;
}

bool AddressTexts::add_target(TextBuffer& out, const RowAddresses& to, const RowAddresses& from,
                              std::size_t row) {
  const std::string import(import_of(from, to, row));
  if (import.empty()) return add(out, to, row);
  if (!to.is_known(row)) {
    if (style_ == Style::JSON) {
      out.add(json(kNull, import, kNull, kNull));
    } else {
      out.add(with_location(code_, function_name(code_, import), {}));
    }
    return true;
  }
  const std::uint64_t ip = to.ips[row];
  const RowTimes times = code::symbol::times_of(to, row);
  const CodeView& first = views_.at(to.spaces[row], times.first);
  const CodeView* const view = views_.with_code(first, times, ip);
  out.add(text(view != nullptr ? *view : first, ip, import));
  return times.backwards || view == &first || code::symbol::covers(first, times.second);
}

bool AddressTexts::add_pair(TextBuffer& out, const RowAddresses& from, const RowAddresses& to,
                            const RowAddresses& indirect, std::size_t row) {
  const std::size_t begin = out.size();
  out.add("  ");
  const std::size_t first = out.size();
  const bool same_from = add(out, from, row);
  const bool has_first = out.size() != first;
  if (!has_first) out.add('?');
  out.add(" -> ");
  const std::size_t second = out.size();
  const bool same = add_target(out, to, indirect, row) && same_from;
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
  const RowTimes last{code::symbol::kLastTime, code::symbol::kLastTime, true};
  // Lists of symbols name addresses that no view maps, too.
  const std::array<const CodeView*, 3> views{
      code::symbol::maps(view, ip) ? &view : nullptr,
      last_views_.with_code(last_views_.at(view.space(), last.first), last, ip), &view};
  std::string name;
  for (const CodeView* const one : views) {
    if (one == nullptr || !name.empty()) continue;
    if (const auto found = code_.symbols.find(one->space(), one->valid_from(), ip))
      name = name_of(code_, *found, ip);
  }
  if (code_.names == Names::SYMBOL && !name.empty()) return name;
  std::string location;
  for (const CodeView* const one : views) {
    if (one != nullptr && location.empty()) location = location_in_module(code_, *one, ip);
  }
  return with_location(code_, name, std::move(location));
}

std::string InstructionTexts::text(const CodeView& view, std::uint64_t ip, base::Bytes bytes,
                                   code::insn::ExecMode mode, const std::uint64_t* target) {
  if (style_ == InstructionStyle::JSON_BYTES) return for_json(digits_of(bytes, ""));
  std::string disassembly = code::insn::disassemble(mode, bytes, ip, code_.cs_base);
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
  const auto exec_mode = static_cast<code::insn::ExecMode>(mode);
  const std::optional<std::uint64_t> target = code::insn::direct_target(exec_mode, bytes, ip, code_.cs_base);
  // The region, and the file that a page dump hides, decide the text, if they have all that it is made of.
  const std::int32_t region = view.provenance(ip).region;
  const bool whole = region >= 0 && view.provenance(ip + size - 1).region == region &&
                     (!target || view.provenance(*target).region == region);
  const std::int32_t of_file = code::symbol::file_at(code_.image, view, ip).region;
  const TextCache::Key same{ip, std::uint64_t{view.space()} << 32U | static_cast<std::uint32_t>(region),
                            key.more | std::uint64_t{static_cast<std::uint32_t>(of_file)} << 16U};
  const TextCache::Ref* const found = whole ? cache_.find(same) : nullptr;
  const TextCache::Ref ref =
      found != nullptr ? *found : cache_.store(text(view, ip, bytes, exec_mode, target ? &*target : nullptr));
  if (whole && found == nullptr) cache_.insert(same, ref);
  cache_.insert(key, ref);
  return ref;
}

}  // namespace ptkit::tables::text
