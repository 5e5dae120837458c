#include "code/source/pdb/names.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

#include "code/image/pe/pe.h"
#include "code/source/pdb/symbol_records.h"

namespace ptkit::code::pdb {
namespace {

// Of several names of one address the first one is shown. A linker's name that ptkit demangles has the
// arguments, as names of ELF files do; Microsoft's schemes are shown by the procedure's own name.
enum class Rank : std::uint8_t { MANGLED, PROCEDURE, PUBLIC };

struct Candidate {
  trace::SymbolEntry entry;
  Rank rank = Rank::PROCEDURE;
};

bool is_mangled(std::string_view name) noexcept { return name.starts_with("_Z") || name.starts_with("_R"); }

std::uint64_t address_of(const Candidate& one) noexcept { return one.entry.file_offset; }

class NameReader {
 public:
  NameReader(const MsfFile& file, const DebugStreams& streams, code::source::Budget& memory)
      : file_(file), streams_(streams), memory_(memory) {}

  [[nodiscard]] std::string read_procedures() {
    for (const Module& module : streams_.modules) {
      std::string problem;
      const Stream stream = file_.stream(module.stream, problem);
      SymbolRecords records(stream, module);
      for (SymbolRecord record; records.next(record);) {
        if (!is_procedure(record.kind) && record.kind != SymbolKind::THUNK) continue;
        Function function;
        if (!read_function(record, function)) return records.damage(record, "a function is cut");
        add(function.name, function, Rank::PROCEDURE);
      }
      if (!records.problem().empty()) return records.problem();
    }
    std::ranges::stable_sort(found_, {}, &address_of);
    procedures_ = found_.size();
    return {};
  }

  // The index has a table of hashes, and the offsets of all records by address. A hostile index may have many
  // offsets of one long record: each reading takes its bytes from the budget.
  [[nodiscard]] std::string read_publics() {
    std::string problem;
    const Stream index = file_.stream(streams_.publics, problem);
    const Stream stream = file_.stream(streams_.records, problem);
    if (!problem.empty() || index.size() == 0) return problem;
    Cursor offsets(index);
    constexpr std::uint32_t kAfter = 20;
    const std::uint32_t hash_bytes = offsets.u32();
    const std::uint32_t count = offsets.u32() / sizeof(std::uint32_t);
    offsets.skip(kAfter);
    offsets.skip(hash_bytes);
    for (std::uint32_t i = 0; i < count && !memory_.is_spent(); ++i) {
      const std::uint32_t at = offsets.u32();
      SymbolRecords records(stream, std::min(at, stream.size()), stream.size());
      SymbolRecord record;
      if (!offsets.good() || !records.next(record))
        return damage_at(index.number(), offsets.offset(), "it names no public symbol");
      if (!memory_.take(record.fields.size())) break;
      if (record.kind == SymbolKind::PUBLIC && !add_public(record))
        return records.damage(record, "a public symbol is cut");
    }
    return {};
  }

  [[nodiscard]] std::vector<trace::SymbolEntry> names() {
    const auto by_name = [](const Candidate& one) {
      return std::tuple(address_of(one), std::string_view(one.entry.name), one.rank);
    };
    const auto by_rank = [](const Candidate& one) {
      return std::tuple(address_of(one), one.rank, std::string_view(one.entry.name));
    };
    const auto same = [](const Candidate& a, const Candidate& b) {
      return address_of(a) == address_of(b) && a.entry.name == b.entry.name;
    };
    std::ranges::sort(found_, {}, by_name);
    found_.erase(std::unique(found_.begin(), found_.end(), same), found_.end());
    std::ranges::sort(found_, {}, by_rank);
    std::vector<trace::SymbolEntry> names;
    names.reserve(found_.size());
    for (Candidate& one : found_) names.push_back(std::move(one.entry));
    return names;
  }

 private:
  // flags, offset, section, name
  [[nodiscard]] bool add_public(const SymbolRecord& record) {
    constexpr std::uint32_t kCode = 1;
    constexpr std::uint32_t kFunction = 2;
    Cursor fields(record.fields);
    const bool is_code = (fields.u32() & (kCode | kFunction)) != 0;
    Function function;
    function.offset = fields.u32();
    function.section = fields.u16();
    std::string_view name = fields.text();
    if (!is_code || !fields.good()) return fields.good();
    if (streams_.is_32_bit) name = code::image::undecorated(name);
    add(name, function, is_mangled(name) ? Rank::MANGLED : Rank::PUBLIC);
    return true;
  }

  void add(std::string_view name, const Function& function, Rank rank) {
    const auto address = streams_.sections.code_address(function.section, function.offset);
    if (!address || name.empty() || !memory_.take(sizeof(Candidate) + name.size())) return;
    const auto procedure =
        std::ranges::lower_bound(found_.begin(), procedures_end(), *address, {}, &address_of);
    const bool is_known = procedure != procedures_end() && address_of(*procedure) == *address;
    found_.push_back({{std::string(name), *address, is_known ? procedure->entry.size : function.size}, rank});
  }

  // None while procedures are read.
  [[nodiscard]] std::vector<Candidate>::iterator procedures_end() {
    return found_.begin() + static_cast<std::ptrdiff_t>(procedures_);
  }

  const MsfFile& file_;
  const DebugStreams& streams_;
  code::source::Budget& memory_;
  std::vector<Candidate> found_;  // procedures first, by address
  std::size_t procedures_ = 0;
};

}  // namespace

std::vector<trace::SymbolEntry> read_names(const MsfFile& file, const DebugStreams& streams,
                                           code::source::Budget& memory, std::string& problem) {
  NameReader reader(file, streams, memory);
  problem = streams.problem;
  if (problem.empty()) problem = reader.read_procedures();
  if (problem.empty()) problem = reader.read_publics();
  if (memory.is_spent()) problem = "it has more names than a file of its size should";
  return problem.empty() ? reader.names() : std::vector<trace::SymbolEntry>();
}

}  // namespace ptkit::code::pdb
