#include "code/source/pdb/debug_streams.h"

#include <array>
#include <cstdio>
#include <optional>

#include "code/source/pdb/cursor.h"
#include "code/source/pdb/pdb_file.h"

namespace ptkit::code::pdb {
namespace {

constexpr std::uint32_t kInfoStream = 1;
constexpr std::uint32_t kDebugStream = 3;

std::uint32_t stream_of(std::uint16_t number) noexcept {
  return number == UINT16_MAX ? DebugStreams::kNoStream : number;
}

class HeaderReader {
 public:
  explicit HeaderReader(const MsfFile& file) : file_(file) {}

  DebugStreams read() {
    read_info();
    const auto age = read_debug_information();
    if (guid_.empty() || !age) return std::move(found_);
    found_.id = pdb_id(guid_, *age);
    return std::move(found_);
  }

 private:
  // version, time, age, GUID; then streams by name
  void read_info() {
    constexpr std::size_t kGuidBytes = 16;
    const Stream stream = file_.stream(kInfoStream, found_.problem);
    Cursor fields(stream);
    fields.skip(2 * sizeof(std::uint32_t));
    age_ = fields.u32();
    std::array<char, 2 * kGuidBytes + 1> digits{};
    const std::uint32_t first = fields.u32();
    const std::uint16_t second = fields.u16();
    const std::uint16_t third = fields.u16();
    int size = std::snprintf(digits.data(), digits.size(), "%08x%04x%04x", first, second, third);
    while (fields.good() && size < static_cast<int>(2 * kGuidBytes))
      size += std::snprintf(&digits[static_cast<std::size_t>(size)], 3, "%02x", fields.next<std::uint8_t>());
    if (!fields.good()) return report(damage_at(kInfoStream, 0, "it has no GUID"));
    guid_ = digits.data();
    read_named_streams(stream, fields);
  }

  // bytes of names, names; then a hash table: entries, capacity, two sets of bits (buckets that are used, and
  // that were), offset of the name and stream of each entry
  void read_named_streams(const Stream& stream, Cursor& fields) {
    const std::uint32_t name_bytes = fields.u32();
    const std::uint32_t names = fields.offset();
    fields.skip(name_bytes);
    const std::uint32_t count = fields.u32();
    fields.skip(sizeof(std::uint32_t));
    for (int set = 0; set < 2; ++set) fields.skip(std::uint64_t{fields.u32()} * sizeof(std::uint32_t));
    for (std::uint32_t i = 0; i < count && fields.good(); ++i) {
      const std::uint32_t name = fields.u32();
      const std::uint32_t number = fields.u32();
      if (!fields.good() || name >= name_bytes) continue;
      if (Cursor(stream, names + name, names + name_bytes).text() == "/names") found_.strings = number;
    }
  }

  // The age that a program has. Tools that change a PDB raise the one in the stream of the GUID.
  std::optional<std::uint32_t> read_debug_information() {
    const Stream stream = file_.stream(kDebugStream, found_.problem);
    Cursor header(stream);
    const bool is_new = header.u32() == UINT32_MAX;
    header.skip(sizeof(std::uint32_t));
    const std::uint32_t age = header.u32();
    header.skip(sizeof(std::uint16_t));  // the index of global symbols
    header.skip(sizeof(std::uint16_t));
    found_.publics = stream_of(header.u16());
    header.skip(sizeof(std::uint16_t));
    found_.records = stream_of(header.u16());
    header.skip(sizeof(std::uint16_t));
    std::array<std::uint32_t, 5> sizes{};  // modules, contributions, section map, files, type servers
    for (std::uint32_t& one : sizes) one = header.u32();
    header.skip(sizeof(std::uint32_t));
    const std::uint32_t streams_bytes = header.u32();
    const std::uint32_t edit_bytes = header.u32();
    header.skip(sizeof(std::uint16_t));
    constexpr std::uint16_t kI386 = 0x14c;
    found_.is_32_bit = header.u16() == kI386;
    header.skip(sizeof(std::uint32_t));
    if (stream.size() == 0) {
      report("it has no debug information (stream 3, DBI)");
      return guid_.empty() ? std::nullopt : std::optional(age_);
    }
    if (!header.good() || !is_new) {
      report(damage_at(kDebugStream, 0, "it has no header of this kind"));
      return std::nullopt;
    }
    const std::uint32_t modules = header.offset();
    header.skip(sizes[0]);
    const std::uint32_t modules_end = header.offset();
    for (std::size_t i = 1; i < sizes.size(); ++i) header.skip(sizes[i]);
    header.skip(edit_bytes);
    const std::uint32_t streams = header.offset();
    header.skip(streams_bytes);
    if (!header.good()) {
      report(damage_at(kDebugStream, modules, "its parts are longer than it is"));
      return age;
    }
    read_sections(Cursor(stream, streams, streams + streams_bytes));
    read_modules(Cursor(stream, modules, modules_end));
    return age;
  }

  // Streams of other parts of the PE file, by number.
  void read_sections(Cursor streams) {
    constexpr int kSections = 5;
    constexpr int kOriginal = 10;  // the sections before code was rearranged
    std::array<std::uint32_t, kOriginal + 1> numbers{};
    for (std::uint32_t& one : numbers)
      one = streams.left() == 0 ? DebugStreams::kNoStream : stream_of(streams.u16());
    constexpr std::uint32_t kHeaderBytes = 40;
    if (file_.stream(numbers[kOriginal], found_.problem).size() >= kHeaderBytes)
      report("its addresses are those of code that was rearranged afterwards (OMAP)");
    const Stream stream = file_.stream(numbers[kSections], found_.problem);
    if (stream.size() < kHeaderBytes) report("it has no headers of sections");
    constexpr std::uint32_t kNameBytes = 8;
    constexpr std::uint32_t kFileFields = 20;
    constexpr std::uint32_t kExecutable = 0x20000000;
    for (Cursor fields(stream); fields.left() >= kHeaderBytes;) {
      Section& section = found_.sections.all.emplace_back();
      fields.skip(kNameBytes);
      section.size = fields.u32();
      section.address = fields.u32();
      fields.skip(kFileFields);
      section.executable = (fields.u32() & kExecutable) != 0;
    }
  }

  // u32, contribution of 28 bytes, flags, stream, bytes of symbols, of lines in an old form, of lines, 16
  // bytes more, and two names
  void read_modules(Cursor fields) {
    constexpr std::uint32_t kBefore = 34;
    constexpr std::uint32_t kAfter = 16;
    std::vector<bool> is_used(std::size_t{UINT16_MAX} + 1);
    while (found_.problem.empty() && fields.left() != 0) {
      const std::uint32_t begin = fields.offset();
      fields.skip(kBefore);
      const std::uint16_t number = fields.u16();
      Module module{number, fields.u32(), 0, 0};
      const std::uint64_t line_begin = std::uint64_t{module.symbol_bytes} + fields.u32();
      const std::uint64_t line_end = line_begin + fields.u32();
      fields.skip(kAfter);
      static_cast<void>(fields.text());
      static_cast<void>(fields.text());
      fields.align();
      if (!fields.good()) return report(damage_at(kDebugStream, begin, "a module is cut"));
      if (number == UINT16_MAX) continue;
      if (is_used[number]) return report(damage_at(kDebugStream, begin, "two modules have one stream"));
      is_used[number] = true;
      if (line_end > file_.stream(number, found_.problem).size())
        return report(damage_at(kDebugStream, begin, "a module has more than its stream"));
      module.line_begin = static_cast<std::uint32_t>(line_begin);
      module.line_end = static_cast<std::uint32_t>(line_end);
      found_.modules.push_back(module);
    }
  }

  void report(const std::string& problem) {
    if (found_.problem.empty()) found_.problem = problem;
  }

  const MsfFile& file_;
  DebugStreams found_;
  std::string guid_;
  std::uint32_t age_ = 0;
};

}  // namespace

DebugStreams read_debug_streams(const MsfFile& file) {
  if (file.problem().empty()) return HeaderReader(file).read();
  DebugStreams none;
  none.problem = file.problem();
  return none;
}

}  // namespace ptkit::code::pdb
