// The code of one address space as it is executed: decoded once, saved once, and again where it changed.
#pragma once

#include <array>
#include <memory>
#include <unordered_map>
#include <vector>

#include "capture/code_reader.h"
#include "capture/file_table.h"
#include "capture/tracee.h"
#include "formats/ptk_writer.h"
#include "insn/insn.h"

namespace ptkit::capture {

struct CodeInsn {
  insn::Insn insn;
  bool pushes_flags = false;  // PUSHF: what it stores shows the trap flag that stepping sets
  bool loads_ss = false;      // MOV SS, POP SS: the step after it ends one instruction late
};

class CodeRecorder {
 public:
  CodeRecorder(pid_t pid, trace::SpaceId space, formats::PtkWriter& writer, FileTable& files,
               CodeReader& reader)
      : pid_(pid), space_(space), memory_(pid), writer_(writer), files_(files), reader_(reader) {}

  // The instruction that is about to be executed at `tsc`, or null: its bytes cannot be read, or are none.
  // Code that is not what it was before is saved as valid from the next tick on. The pointer is good until
  // the next call.
  [[nodiscard]] const CodeInsn* fetch(std::uint64_t ip, insn::ExecMode mode, std::uint64_t tsc);

  // A system call may have changed mappings or their protection.
  void mappings_changed() noexcept { ++generation_; }
  // Raised when code that was executed before has changed: a decoder must know the time of that exactly.
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
    insn::ExecMode mode = insn::ExecMode::UNKNOWN;  // of `insns`
    std::uint64_t generation = 0;
    bool fixed = false;  // nobody can write it without a system call
    std::int32_t file = -1;
    std::uint64_t file_offset = 0;
  };

  [[nodiscard]] Page* page_at(std::uint64_t address, std::uint64_t tsc);
  [[nodiscard]] bool load(std::uint64_t address, Page& page, std::uint64_t tsc_from);
  [[nodiscard]] bool refresh(std::uint64_t address, Page& page, std::uint64_t tsc);
  void save(std::uint64_t address, const Page& page, std::uint64_t tsc_from);
  void place(std::uint64_t address, Page& page);
  [[nodiscard]] std::int32_t file_of(const Mapping& mapping);
  void read_mappings(std::uint64_t tsc);
  // False if the bytes at [ip, ip + size) of a page that may be written are not those recorded.
  [[nodiscard]] bool unchanged(std::uint64_t ip, std::size_t size, const Page& page) const;
  [[nodiscard]] const CodeInsn* decode_across(std::uint64_t ip, insn::ExecMode mode, Page& first,
                                              std::uint64_t tsc);

  pid_t pid_;
  trace::SpaceId space_;
  Memory memory_;
  formats::PtkWriter& writer_;
  FileTable& files_;
  CodeReader& reader_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;
  std::uint64_t last_address_ = 1;  // of last_page_; 1 is no page
  Page* last_page_ = nullptr;
  std::vector<Mapping> mappings_;
  std::vector<Mapping> told_;  // executable mappings that the bundle knows
  std::uint64_t generation_ = 1;
  std::uint64_t mappings_generation_ = 0;
  std::uint64_t changes_ = 0;
  CodeInsn across_;
};

}  // namespace ptkit::capture
