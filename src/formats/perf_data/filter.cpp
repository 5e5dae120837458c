#include "formats/perf_data/filter.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/paths.h"
#include "code/image/files/code_file.h"
#include "trace/warning_codes.h"

namespace ptkit::formats::perf {

namespace {

using trace::RangeKind;

constexpr std::string_view kBlanks = " \t\n";
constexpr std::string_view kEnds = " ,\t\n";  // of a file's name, and between clauses
constexpr std::size_t kMostClauses = 64;      // trace units have four ranges
constexpr std::size_t kMostCompared = 4'000'000;
constexpr std::size_t kMostOfSpace = 64;  // decoders compare addresses with each range
constexpr std::ptrdiff_t kMostOfAll = 65'536;

void skip(std::string_view& text, std::string_view characters) {
  text.remove_prefix(std::min(text.find_first_not_of(characters), text.size()));
}

std::string_view take_word(std::string_view& text, std::string_view ends) {
  const std::string_view word = text.substr(0, text.find_first_of(ends));
  text.remove_prefix(word.size());
  return word;
}

// As strtoull() reads it: hexadecimal, octal or decimal.
std::optional<std::uint64_t> take_number(std::string_view& text) {
  int radix = 10;
  std::string_view digits = text;
  if (digits.starts_with("0x") || digits.starts_with("0X")) {
    radix = 16;
    digits.remove_prefix(2);
  } else if (digits.starts_with('0')) {
    radix = 8;
  }
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number, radix);
  if (error != std::errc{}) return std::nullopt;
  digits.remove_prefix(static_cast<std::size_t>(end - digits.data()));
  text = digits;
  return number;
}

// Reads what follows after blanks and `mark`. False: the mark is not there.
bool take_mark(std::string_view& text, char mark) {
  std::string_view rest = text;
  skip(rest, kBlanks);
  if (!rest.starts_with(mark)) return false;
  rest.remove_prefix(1);
  skip(rest, kBlanks);
  text = rest;
  return true;
}

// Returns what is wrong with the clause, or nullptr.
const char* take_clause(std::string_view& text, FilterClause& out) {
  const std::string_view begin = text;
  const std::string_view action = take_word(text, kEnds);
  if (action == "filter") {
    out.kind = RangeKind::FILTER;
  } else if (action == "stop" || action == "tracestop") {
    out.kind = RangeKind::TRACE_STOP;
  } else if (action == "start") {  // no range: packets are on from an address on
    out.kind = RangeKind::OFF;
  } else {
    return "it begins with none of filter, start, stop and tracestop";
  }
  skip(text, kBlanks);
  const auto address = take_number(text);
  if (!address) return "it has no address in numbers";
  out.address = *address;
  if (take_mark(text, '/')) {
    const auto size = take_number(text);
    if (!size) return "its size is no number";
    out.size = *size;
  }
  if (take_mark(text, '@')) {
    out.file = take_word(text, kEnds);
    if (out.file.empty()) return "it names no file";
  }
  if (!text.empty() && kEnds.find(text.front()) == std::string_view::npos)
    return "characters follow that belong to no part of it";
  out.text = begin.substr(0, begin.size() - text.size());
  return nullptr;
}

// The end of the symbol at an offset: the size of a clause that has none.
std::uint64_t size_of_symbol(const std::vector<trace::SymbolEntry>& symbols, std::uint64_t offset) {
  for (const trace::SymbolEntry& symbol : symbols) {
    if (offset >= symbol.file_offset && offset - symbol.file_offset < symbol.size)
      return symbol.file_offset + symbol.size - offset;
  }
  return 0;
}

// Ranges of one kind. Those that touch are one.
class JoinedRanges {
 public:
  // Returns how many ranges there are more than before; less than 0: it joins some.
  std::ptrdiff_t add(std::uint64_t first, std::uint64_t last) {
    const auto before = static_cast<std::ptrdiff_t>(lasts_.size());
    auto next = lasts_.upper_bound(first);
    if (next != lasts_.begin() && touches(std::prev(next)->second, first)) {
      --next;
      first = next->first;
    }
    while (next != lasts_.end() && touches(last, next->first)) {
      last = std::max(last, next->second);
      next = lasts_.erase(next);
    }
    lasts_.emplace(first, last);
    return static_cast<std::ptrdiff_t>(lasts_.size()) - before;
  }
  [[nodiscard]] const std::map<std::uint64_t, std::uint64_t>& lasts() const noexcept { return lasts_; }
  [[nodiscard]] bool operator==(const JoinedRanges&) const = default;

 private:
  static bool touches(std::uint64_t last, std::uint64_t first) noexcept {
    return last >= first || last + 1 == first;
  }
  std::map<std::uint64_t, std::uint64_t> lasts_;  // by first address
};

class Resolver {
 public:
  // `is_one`: the text has one filter clause.
  Resolver(trace::TraceBundle& bundle, bool is_one) : bundle_(bundle), is_one_(is_one) {
    for (std::size_t i = 0; i < bundle.code.size(); ++i) {
      const trace::CodeRegion& region = bundle.code[i];
      if (region.file < 0 || region.size == 0) continue;
      const std::string& path = bundle.files[static_cast<std::size_t>(region.file)].path;
      regions_[std::string(base::without_mark(path))].push_back(i);
    }
  }

  void add(FilterClause clause) {
    if (clause.kind == RangeKind::OFF) return refuse(clause, "a start alone is no range");
    if (clause.file.empty()) return add_kernel(clause);
    const auto found = regions_.find(clause.file);
    if (found == regions_.end()) return refuse(clause, "no mapping of its file was recorded");
    if (clause.size == 0) clause.size = missing_size(clause, found->second);
    if (clause.size == 0) return refuse(clause, "it has no size, and no symbol is there");
    bool any = false;
    parts_ += found->second.size();
    if (parts_ > kMostCompared) return refuse(clause, "its file has too many mappings");
    for (const std::size_t number : found->second) {
      any = add_part(clause, bundle_.code[number]) || any;
      if (is_too_much_) return refuse(clause, "its file is mapped at too many addresses");
    }
    if (!any) refuse(clause, "its part of the file was not mapped");
  }

  // Code outside of all filter ranges is taken as not traced: a range that is missing makes the others wrong.
  void refuse(const FilterClause& clause, std::string problem) {
    const bool is_filter = clause.kind == RangeKind::FILTER;
    lacks_filter_ = lacks_filter_ || is_filter;
    if (is_filter && !is_one_) problem += ", so no filter range is used";
    bundle_.warnings.push_back(warn(trace::WarningCode::PERF_FILTER_UNUSED, clause.text, problem));
  }

  // Ranges that are equal in all spaces that have some count for all.
  [[nodiscard]] std::vector<trace::SpaceRange> all_ranges() {
    const bool is_one =
        std::ranges::all_of(spaces_, [&](const auto& one) { return one.second == spaces_.begin()->second; });
    std::vector<trace::SpaceRange> all = kernel_;
    for (const auto& [space, kinds] : spaces_) {
      for (const auto& [kind, ranges] : kinds) {
        for (const auto& [first, last] : ranges.lasts())
          all.push_back({is_one ? trace::kAnySpace : space, {kind, first, last}});
      }
      if (is_one) break;
    }
    if (lacks_filter_)
      std::erase_if(all, [](const auto& one) { return one.range.kind == RangeKind::FILTER; });
    return all;
  }

 private:
  void add_kernel(FilterClause& clause) {
    if (clause.size == 0) {
      for (const trace::CodeRegion& region : bundle_.code) {
        if (clause.size != 0) break;
        if (region.file < 0 || clause.address < region.address ||
            clause.address - region.address >= region.size)
          continue;
        clause.size = size_of_symbol(bundle_.files[static_cast<std::size_t>(region.file)].symbols,
                                     clause.address - region.address + region.file_offset);
      }
    }
    if (clause.kind == RangeKind::TRACE_STOP) clause.size = std::max<std::uint64_t>(clause.size, 1);
    if (clause.size == 0) return refuse(clause, "it has no size, and no symbol is there");
    kernel_.push_back(
        {trace::kAnySpace,
         {clause.kind, clause.address, clause.address + std::min(clause.size - 1, ~clause.address)}});
  }

  // A TraceStop range may be one address.
  [[nodiscard]] std::uint64_t missing_size(const FilterClause& clause,
                                           const std::vector<std::size_t>& regions) const {
    if (clause.kind == RangeKind::TRACE_STOP) return 1;
    for (const std::size_t number : regions) {
      const base::Bytes file =
          bundle_.files[static_cast<std::size_t>(bundle_.code[number].file)].contents.bytes();
      if (!file.empty()) return size_of_symbol(code::image::read_symbols(file), clause.address);
    }
    return 0;
  }

  // False: the region has nothing of the clause's part of the file.
  bool add_part(const FilterClause& clause, const trace::CodeRegion& region) {
    const std::uint64_t last_offset = region.file_offset + std::min(region.size - 1, ~region.file_offset);
    const std::uint64_t first = std::max(clause.address, region.file_offset);
    const std::uint64_t last =
        std::min(clause.address + std::min(clause.size - 1, ~clause.address), last_offset);
    if (first > last) return false;
    const std::uint64_t delta = region.address - region.file_offset;
    Kinds& kinds = spaces_[region.space];
    ranges_ += kinds[clause.kind].add(first + delta, last + delta);
    std::size_t here = 0;
    for (const auto& [kind, ranges] : kinds) here += ranges.lasts().size();
    is_too_much_ = is_too_much_ || here > kMostOfSpace || ranges_ > kMostOfAll;
    return true;
  }

  using Kinds = std::map<RangeKind, JoinedRanges>;
  trace::TraceBundle& bundle_;
  bool is_one_;
  bool lacks_filter_ = false;
  bool is_too_much_ = false;                                 // a limit of ranges is reached
  std::ptrdiff_t ranges_ = 0;                                // of all spaces
  std::map<std::string, std::vector<std::size_t>> regions_;  // by path
  std::map<trace::SpaceId, Kinds> spaces_;
  std::size_t parts_ = 0;  // mappings that all clauses were compared with
  std::vector<trace::SpaceRange> kernel_;
};

}  // namespace

ParsedFilter parse_filter(std::string_view text) {
  ParsedFilter out;
  for (skip(text, kEnds); !text.empty(); skip(text, kEnds)) {
    const std::string_view begin = text;
    FilterClause clause;
    const char* const problem =
        out.clauses.size() == kMostClauses ? "there are too many parts" : take_clause(text, clause);
    if (problem != nullptr) {
      out.left = begin;
      out.problem = problem;
      return out;
    }
    out.clauses.push_back(std::move(clause));
  }
  return out;
}

void apply_filter(std::string_view text, trace::TraceBundle& bundle) {
  const ParsedFilter parsed = parse_filter(text);
  const auto filters = std::ranges::count(parsed.clauses, RangeKind::FILTER, &FilterClause::kind);
  Resolver resolver(bundle, filters + (parsed.problem.empty() ? 0 : 1) <= 1);
  for (const FilterClause& clause : parsed.clauses) resolver.add(clause);
  // Text that cannot be read may have further filter ranges.
  if (!parsed.problem.empty()) resolver.refuse({.text = parsed.left}, parsed.problem);
  std::size_t count = 0;
  for (const trace::SpaceRange& one : resolver.all_ranges()) {
    if (one.space == trace::kAnySpace && count < bundle.configuration.ranges.size()) {
      bundle.configuration.ranges[count++] = one.range;
    } else {
      bundle.configuration.space_ranges.push_back(one);
    }
  }
}

}  // namespace ptkit::formats::perf
