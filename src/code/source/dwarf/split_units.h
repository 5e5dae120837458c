// Units with the functions of skeleton units, from other files (-gsplit-dwarf). Internal to
// src/code/source/dwarf.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "code/source/dwarf/context.h"
#include "code/source/dwarf/debug_info.h"
#include "code/source/dwarf/handle.h"
#include "code/source/dwarf/split_file.h"

namespace ptkit::code::dwarf {

// libdw would open the files itself, whatever they are, and only where the compiler wrote them. So each unit
// is rebuilt in memory as an unsplit file, with the part of .debug_addr that its skeleton has.
class SplitUnits {
 public:
  // `skeletons` and `context` must outlive it.
  SplitUnits(const Handle& skeletons, Context& context, FindSplit find)
      : skeletons_(skeletons), context_(context), find_(std::move(find)) {}

  // The unit that has the functions of a unit: the unit itself, if it is no skeleton. Nothing: it is missing.
  [[nodiscard]] std::optional<Dwarf_Die> whole(Dwarf_Die& unit);
  // The name of the first file that is missing; empty: none.
  [[nodiscard]] const std::string& missing() const noexcept { return missing_; }

 private:
  struct Skeleton {
    Dwarf_Die die{};
    std::uint64_t id = 0;
    Dwarf_Half version = 0;
  };
  // A section that all skeletons share; each has a part of it from a base on.
  struct Shared {
    base::Bytes whole;
    std::vector<std::uint64_t> bases;  // of all units, sorted
    [[nodiscard]] base::Bytes from(std::uint64_t base) const;
  };
  [[nodiscard]] std::optional<Dwarf_Die> find(const Skeleton& skeleton, const SplitLink& link);
  void prepare();
  [[nodiscard]] std::optional<Dwarf_Die> open_unit(const SplitFile& file, const Skeleton& skeleton);

  const Handle& skeletons_;
  Context& context_;
  FindSplit find_;
  bool is_prepared_ = false;  // at the first skeleton; then these are known
  std::vector<std::unique_ptr<SplitFile>> packages_;
  Shared addresses_;
  Shared ranges_;
  std::vector<std::unique_ptr<Handle>> units_;
  std::string missing_;
};

}  // namespace ptkit::code::dwarf
