// Small PDBs: streams of symbols, lines and types, in an MSF file with its blocks in disorder.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ptkit::code::pdb::test {

// Fields, little-endian.
class Fields {
 public:
  std::vector<std::uint8_t> bytes;

  Fields& put(std::uint64_t value, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i, value >>= 8U) bytes.push_back(static_cast<std::uint8_t>(value));
    return *this;
  }
  Fields& u8(std::uint64_t value) { return put(value, 1); }
  Fields& u16(std::uint64_t value) { return put(value, 2); }
  Fields& u32(std::uint64_t value) { return put(value, 4); }
  Fields& text(std::string_view value) {
    bytes.insert(bytes.end(), value.begin(), value.end());
    return u8(0);
  }
  Fields& add(const std::vector<std::uint8_t>& more) {
    bytes.insert(bytes.end(), more.begin(), more.end());
    return *this;
  }
  Fields& align() {
    while (bytes.size() % 4 != 0) u8(0);
    return *this;
  }
  void set(std::size_t at, std::uint64_t value) {
    for (std::size_t i = 0; i < 4; ++i, value >>= 8U) bytes[at + i] = static_cast<std::uint8_t>(value);
  }
};

// A record of symbols or types.
inline std::vector<std::uint8_t> record(std::uint16_t kind, Fields fields) {
  while (fields.bytes.size() % 4 != 0) fields.u8(0);
  return Fields().u16(fields.bytes.size() + 2).u16(kind).add(fields.bytes).bytes;
}

inline constexpr std::uint16_t kGlobalProcedure = 0x1110;
inline constexpr std::uint16_t kInlineSite = 0x114d;

// Symbols of a module.
class Symbols {
 public:
  Symbols() { fields_.u32(4); }

  void add(const std::vector<std::uint8_t>& one) { fields_.add(one); }
  void begin_procedure(const std::string& name, std::uint16_t section, std::uint32_t offset,
                       std::uint32_t size, std::uint16_t kind = kGlobalProcedure) {
    begin(kind, Fields().u32(size).u32(0).u32(0).u32(0x1001).u32(offset).u16(section).u8(0).text(name), true);
  }
  void begin_site(std::uint32_t inlinee, const std::vector<std::uint8_t>& annotations,
                  std::uint16_t kind = kInlineSite) {
    Fields fields;
    fields.u32(inlinee);
    if (kind != kInlineSite) fields.u32(1);
    begin(kind, fields.add(annotations), false);
  }
  // Ends the function or call that was begun last.
  void end() {
    fields_.set(open_.back() + 8, fields_.bytes.size());
    add(record(6, {}));
    open_.pop_back();
  }
  void procedure(const std::string& name, std::uint16_t section, std::uint32_t offset, std::uint32_t size,
                 std::uint16_t kind = kGlobalProcedure) {
    begin_procedure(name, section, offset, size, kind);
    end();
  }
  // Changes the end in the record that was begun last.
  void set_end(std::uint32_t end) { fields_.set(open_.back() + 8, end); }
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(fields_.bytes.size()); }
  [[nodiscard]] const std::vector<std::uint8_t>& bytes() const { return fields_.bytes; }

 private:
  void begin(std::uint16_t kind, const Fields& rest, bool has_next) {
    const std::uint64_t parent = open_.empty() ? 0 : open_.back();
    open_.push_back(fields_.bytes.size());
    Fields all;
    all.u32(parent).u32(0);
    if (has_next) all.u32(0);
    add(record(kind, all.add(rest.bytes)));
  }

  Fields fields_;
  std::vector<std::size_t> open_;
};

inline std::vector<std::uint8_t> public_symbol(const std::string& name, std::uint16_t section,
                                               std::uint32_t offset, std::uint32_t flags = 2) {
  return record(0x110e, Fields().u32(flags).u32(offset).u16(section).text(name));
}

// A part after the symbols of a module.
inline std::vector<std::uint8_t> subsection(std::uint32_t kind, const Fields& fields) {
  return Fields().u32(kind).u32(fields.bytes.size()).add(fields.bytes).align().bytes;
}

struct Line {
  std::uint32_t offset = 0;  // in the section
  std::uint32_t number = 0;
};
struct FileLines {
  std::uint32_t file = 0;  // offset in the checksums
  std::vector<Line> lines;
};
inline std::vector<std::uint8_t> lines_part(std::uint16_t section, std::uint32_t begin, std::uint32_t size,
                                            const std::vector<FileLines>& files, bool has_columns = false) {
  Fields fields;
  fields.u32(begin).u16(section).u16(has_columns ? 1 : 0).u32(size);
  for (const FileLines& file : files) {
    fields.u32(file.file).u32(file.lines.size()).u32(12 + file.lines.size() * (has_columns ? 12 : 8));
    for (const Line& line : file.lines) fields.u32(line.offset - begin).u32(line.number | 0x80000000U);
    for (std::size_t i = 0; has_columns && i < file.lines.size(); ++i) fields.u16(3).u16(4);
  }
  return subsection(0xf2, fields);
}

struct Section {
  std::uint32_t address = 0;
  std::uint32_t size = 0;
  std::uint32_t flags = 0;
};
struct MadeModule {
  std::vector<std::uint8_t> symbols;
  std::vector<std::uint8_t> parts;
};

// The streams of a PDB, by these numbers; those of modules follow.
struct PdbMaker {
  enum Number : std::uint16_t {
    OLD,
    INFO,
    TYPES,
    DEBUG,
    IDS,
    SECTIONS,
    PUBLICS,
    RECORDS,
    NAMES,
    ORIGINAL,
    MODULES
  };

  std::uint32_t age = 1;
  bool is_32_bit = false;
  std::vector<test::Section> sections{{0x1000, 0x200, 0x60000020}, {0x2000, 0x100, 0xc0000040}};
  std::vector<std::vector<std::uint8_t>> publics;
  std::vector<std::vector<std::uint8_t>> types;  // from number 0x1000 on
  std::vector<std::vector<std::uint8_t>> ids;    // from number 0x1000 on
  std::vector<MadeModule> modules;
  bool is_rearranged = false;

  // The offset of a path.
  std::uint32_t path(const std::string& text) {
    const auto at = static_cast<std::uint32_t>(paths_.bytes.size());
    paths_.text(text);
    return at;
  }
  // Adds a file with a checksum of so many bytes; returns its offset in the checksums.
  std::uint32_t file(Fields& checksums, const std::string& path_text, std::uint8_t sum_bytes = 0) {
    const auto at = static_cast<std::uint32_t>(checksums.bytes.size());
    checksums.u32(path(path_text)).u8(sum_bytes).u8(sum_bytes == 0 ? 0 : 1);
    for (int i = 0; i < sum_bytes; ++i) checksums.u8(0x1a);
    checksums.align();
    return at;
  }

  [[nodiscard]] std::vector<std::vector<std::uint8_t>> streams() const {
    std::vector<std::vector<std::uint8_t>> all(MODULES);
    all[INFO] = info();
    all[TYPES] = types_of(types);
    all[IDS] = types_of(ids);
    for (const test::Section& one : sections) {
      Fields header;
      header.put(0, 8).u32(one.size).u32(one.address).put(0, 20).u32(one.flags);
      all[SECTIONS].insert(all[SECTIONS].end(), header.bytes.begin(), header.bytes.end());
    }
    if (is_rearranged) all[ORIGINAL] = all[SECTIONS];
    Fields offsets;
    for (const auto& one : publics) {
      offsets.u32(all[RECORDS].size());
      all[RECORDS].insert(all[RECORDS].end(), one.begin(), one.end());
    }
    Fields index;
    index.u32(8).u32(offsets.bytes.size()).put(0, 20).put(0, 8).add(offsets.bytes);
    all[PUBLICS] = index.bytes;
    all[NAMES] = Fields().u32(0xeffeeffe).u32(1).u32(paths_.bytes.size()).add(paths_.bytes).bytes;
    all[DEBUG] = debug();
    for (const MadeModule& one : modules) all.push_back(Fields().add(one.symbols).add(one.parts).bytes);
    return all;
  }
  [[nodiscard]] std::vector<std::uint8_t> file() const { return msf_of(streams()); }

  // An MSF file with these streams. Each second block of the file is skipped at first, so that no stream has
  // its blocks in order.
  [[nodiscard]] static std::vector<std::uint8_t> msf_of(
      const std::vector<std::vector<std::uint8_t>>& streams) {
    Fields directory;
    directory.u32(streams.size());
    std::size_t count = 0;
    for (const auto& one : streams) {
      directory.u32(one.size());
      count += blocks(one.size());
    }
    const std::size_t own = blocks(directory.bytes.size() + 4 * count);
    const std::size_t map = blocks(4 * own);
    const std::size_t all = kFirstBlock + count + own + map;
    std::vector<std::uint32_t> free;
    for (std::size_t i = kFirstBlock; i < all; i += 2) free.push_back(static_cast<std::uint32_t>(i));
    for (std::size_t i = kFirstBlock + 1; i < all; i += 2) free.push_back(static_cast<std::uint32_t>(i));
    std::vector<std::uint8_t> file(all * kBlock);
    std::size_t next = 0;
    const auto write = [&](const std::vector<std::uint8_t>& bytes, Fields& numbers) {
      for (std::size_t at = 0; at < bytes.size(); at += kBlock) {
        const std::uint32_t block = free[next++];
        numbers.u32(block);
        std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), std::min(kBlock, bytes.size() - at),
                    file.begin() + static_cast<std::ptrdiff_t>(block * kBlock));
      }
    };
    for (const auto& one : streams) write(one, directory);
    Fields numbers;
    Fields maps;
    write(directory.bytes, numbers);
    write(numbers.bytes, maps);
    Fields header;
    header.add({kMagic.begin(), kMagic.end()});
    header.u32(kBlock).u32(1).u32(all).u32(directory.bytes.size()).u32(0).add(maps.bytes);
    std::ranges::copy(header.bytes, file.begin());
    return file;
  }

  static constexpr std::size_t kBlock = 512;
  static constexpr std::size_t kFirstBlock = 3;

 private:
  static constexpr std::string_view kMagic{
      "Microsoft C/C++ MSF 7.00\r\n\x1a"
      "DS\0\0\0",
      32};

  static std::size_t blocks(std::size_t bytes) { return (bytes + kBlock - 1) / kBlock; }

  [[nodiscard]] std::vector<std::uint8_t> info() const {
    Fields fields;
    fields.u32(20000404).u32(0).u32(age + 7);
    fields.u32(0x33221100).u16(0x5544).u16(0x7766);
    for (std::uint32_t i = 0x88; i <= 0xff; i += 0x11) fields.u8(i);
    const std::string names("/LinkInfo\0/names\0", 17);
    fields.u32(names.size()).add({names.begin(), names.end()});
    return fields.u32(2).u32(4).u32(1).u32(0b101).u32(0).u32(0).u32(UINT16_MAX).u32(10).u32(NAMES).bytes;
  }

  static std::vector<std::uint8_t> types_of(const std::vector<std::vector<std::uint8_t>>& records) {
    Fields all;
    for (const auto& one : records) all.add(one);
    Fields fields;
    fields.u32(20040203).u32(56).u32(0x1000).u32(0x1000 + records.size()).u32(all.bytes.size()).put(0, 36);
    return fields.add(all.bytes).bytes;
  }

  [[nodiscard]] std::vector<std::uint8_t> debug() const {
    Fields list;
    std::uint16_t stream = MODULES;
    for (const MadeModule& one : modules) {
      list.put(0, 34).u16(stream++).u32(one.symbols.size()).u32(0).u32(one.parts.size()).put(0, 16);
      list.text("/src/a.o").text("").align();
    }
    list.put(0, 34).u16(UINT16_MAX).put(0, 28).text("* Linker *").text("").align();
    Fields streams;
    for (std::uint16_t i = 0; i < 11; ++i)
      streams.u16(i == 5 ? SECTIONS : i == 10 && is_rearranged ? ORIGINAL : UINT16_MAX);
    Fields fields;
    fields.u32(UINT32_MAX)
        .u32(19990903)
        .u32(age)
        .u16(UINT16_MAX)
        .u16(0)
        .u16(PUBLICS)
        .u16(0)
        .u16(RECORDS)
        .u16(0);
    fields.u32(list.bytes.size()).put(0, 20).u32(streams.bytes.size()).u32(0).u16(0);
    fields.u16(is_32_bit ? 0x14c : 0x8664).u32(0);
    return fields.add(list.bytes).add(streams.bytes).bytes;
  }

  Fields paths_{{0}};
};

}  // namespace ptkit::code::pdb::test
