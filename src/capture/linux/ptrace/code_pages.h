// The executed code pages of one address space. Each page is decoded and saved once, and again after a
// change.
#pragma once

#include <array>
#include <memory>
#include <unordered_map>
#include <vector>

#include "capture/linux/files/code_reader.h"
#include "capture/linux/files/file_table.h"
#include "capture/linux/process/process.h"
#include "code/insn/insn.h"
#include "formats/ptk/writer.h"

namespace ptkit::capture {

struct CodeInsn {
  code::insn::Insn insn;
  bool pushes_flags = false;  // PUSHF: it stores the trap flag that single-stepping sets
  bool loads_ss = false;      // MOV SS, POP SS: the step after it ends one instruction late
};

class CodePages {
 public:
  CodePages(pid_t pid, trace::SpaceId space, formats::PtkWriter& writer, FileTable& files, CodeReader& reader)
      : pid_(pid), space_(space), memory_(pid), writer_(writer), files_(files), reader_(reader) {}

  // The instruction at `ip`, to be executed at `tsc`. Null if its bytes cannot be read or decoded. Changed
  // code is saved as valid from the next tick on. The pointer is valid until the next call.
  [[nodiscard]] const CodeInsn* fetch(std::uint64_t ip, code::insn::ExecMode mode, std::uint64_t tsc);

  // Call after a system call that may have changed mappings or their protection.
  void mappings_changed() noexcept { ++generation_; }
  // Counts changes of executed code. A decoder must know the exact time of each change.
  [[nodiscard]] std::uint64_t changes() const noexcept { return changes_; }
  [[nodiscard]] const Memory& memory() const noexcept { return memory_; }
  [[nodiscard]] trace::SpaceId space() const noexcept { return space_; }

 private:
  static constexpr std::size_t kPageBytes = 4096;
  using PageBytes = std::array<std::uint8_t, kPageBytes>;
  struct Page {
    PageBytes bytes{};
    std::array<std::int16_t, kPageBytes> index{};  // into `insns`, by offset; -1: not decoded yet
    std::vector<CodeInsn> insns;
    code::insn::ExecMode mode = code::insn::ExecMode::UNKNOWN;  // of `insns`
    std::uint64_t generation = 0;
    bool fixed = false;  // private and not writable: its bytes change only by a system call
    std::int32_t file = -1;
    std::uint64_t file_offset = 0;
  };

  [[nodiscard]] Page* page_at(std::uint64_t address, std::uint64_t tsc);
  [[nodiscard]] bool load(std::uint64_t address, Page& page, std::uint64_t tsc_from);
  [[nodiscard]] bool refresh(std::uint64_t address, Page& page, std::uint64_t tsc);
  void save(std::uint64_t address, const Page& page, std::uint64_t tsc_from);
  void set_source(std::uint64_t address, Page& page);
  [[nodiscard]] std::int32_t file_of(const Mapping& mapping);
  void write_record(const Mapping& mapping, std::int32_t file, std::uint64_t tsc);
  void read_mappings(std::uint64_t tsc);
  // Returns false if the bytes at [ip, ip + size) of a writable page differ from the recorded bytes.
  [[nodiscard]] bool unchanged(std::uint64_t ip, std::size_t size, const Page& page) const;
  [[nodiscard]] const CodeInsn* decode_across(std::uint64_t ip, code::insn::ExecMode mode, Page& first,
                                              std::uint64_t tsc);

  pid_t pid_;
  trace::SpaceId space_;
  Memory memory_;
  formats::PtkWriter& writer_;
  FileTable& files_;
  CodeReader& reader_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;
  std::uint64_t last_address_ = 1;  // address of last_page_; 1 is no page address
  Page* last_page_ = nullptr;
  std::vector<Mapping> mappings_;
  std::vector<Mapping> written_mappings_;  // mappings in the bundle
  std::uint64_t generation_ = 1;
  std::uint64_t mappings_generation_ = 0;
  std::uint64_t changes_ = 0;
  CodeInsn across_;
};

}  // namespace ptkit::capture
