// Source lines and inlined functions of a module, from its PDB. The names of functions that are not inlined
// are those of PdbFile::names().
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "code/source/pdb/pdb_file.h"
#include "code/source/pdb/tables.h"
#include "code/source/source_info.h"

namespace ptkit::code::pdb {

class PdbInfo final : public code::source::SourceInfo {
 public:
  // `linked_at`: the address that the module was linked for.
  PdbInfo(std::shared_ptr<const Tables> tables, std::uint64_t linked_at)
      : tables_(std::move(tables)), linked_at_(linked_at) {}

  [[nodiscard]] std::unique_ptr<code::source::LineCursor> line_cursor() const override;
  [[nodiscard]] std::vector<code::source::Frame> frames_at(std::uint64_t address) const override;
  [[nodiscard]] code::source::InlinedSpan inlined_at(std::uint64_t address) const override;
  [[nodiscard]] code::source::InlinedCall inlined_call(std::uint32_t number) const override;
  [[nodiscard]] bool begins_call(std::uint32_t number, std::uint64_t address) const override;

 private:
  std::shared_ptr<const Tables> tables_;
  std::uint64_t linked_at_;
};

}  // namespace ptkit::code::pdb
