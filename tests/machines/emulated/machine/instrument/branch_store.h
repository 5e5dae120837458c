// Branch Trace Store: records of branches that a processor writes to the buffer which its DS area names.
// Intel SDM vol. 3, "Branch Trace Store (BTS)" and "BTS and DS Save Area".
#pragma once

#include <cstdint>
#include <optional>

#include "bochs_headers.h"

namespace ptkit::emulated {

class BranchStore {
 public:
  explicit BranchStore(BX_CPU_C& cpu) : cpu_(cpu) {}

  void reset() { debugctl_ = ds_area_ = 0; }
  // IA32_DEBUGCTL or IA32_DS_AREA; null: another register.
  [[nodiscard]] std::uint64_t* msr(unsigned index);
  [[nodiscard]] bool on() const;
  // A branch was taken, or an interrupt or exception delivered. True: the buffer's interrupt comes.
  bool record(std::uint64_t from, std::uint64_t to);

 private:
  [[nodiscard]] std::optional<bx_phy_address> physical(std::uint64_t address);
  [[nodiscard]] std::uint64_t load(std::uint64_t address);
  void store(std::uint64_t address, std::uint64_t value);

  BX_CPU_C& cpu_;
  std::uint64_t debugctl_ = 0;
  std::uint64_t ds_area_ = 0;
};

}  // namespace ptkit::emulated
