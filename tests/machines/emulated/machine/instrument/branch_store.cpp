#include "branch_store.h"

#include <cstddef>

#include "common/pt_bts.h"
#include "ptkit/rtit_regs.h"

namespace ptkit::emulated {

std::uint64_t* BranchStore::msr(unsigned index) {
  if (index == PT_MSR_DEBUGCTL) return &debugctl_;
  return index == PT_MSR_DS_AREA ? &ds_area_ : nullptr;
}

bool BranchStore::on() const {
  constexpr std::uint64_t kBoth = std::uint64_t{1} << PT_DEBUGCTL_TR | std::uint64_t{1} << PT_DEBUGCTL_BTS;
  return (debugctl_ & kBoth) == kBoth;
}

// The manual does not say whose privilege level counts where it changes; here, that of the target.
bool BranchStore::record(std::uint64_t from, std::uint64_t to) {
  const bool user = cpu_.sregs[BX_SEG_REG_CS].selector.rpl != 0;
  const unsigned off = user ? PT_DEBUGCTL_BTS_OFF_USR : PT_DEBUGCTL_BTS_OFF_OS;
  if (!on() || (debugctl_ >> off & 1) != 0) return false;
  const bool interrupts = (debugctl_ >> PT_DEBUGCTL_BTINT & 1) != 0;
  const std::uint64_t maximum = load(ds_area_ + offsetof(pt_ds_area, bts_maximum));
  std::uint64_t index = load(ds_area_ + offsetof(pt_ds_area, bts_index));
  if (index + sizeof(pt_bts_record) > maximum) return interrupts;  // nobody has made room
  store(index + offsetof(pt_bts_record, from), from);
  store(index + offsetof(pt_bts_record, to), to);
  store(index + offsetof(pt_bts_record, flags), 0);
  index += sizeof(pt_bts_record);
  const bool full = index + sizeof(pt_bts_record) > maximum;
  if (full && !interrupts) index = load(ds_area_ + offsetof(pt_ds_area, bts_base));
  store(ds_area_ + offsetof(pt_ds_area, bts_index), index);
  return interrupts && index >= load(ds_area_ + offsetof(pt_ds_area, bts_threshold));
}

std::optional<bx_phy_address> BranchStore::physical(std::uint64_t address) {
  bx_phy_address found = 0;
  if (!cpu_.dbg_xlate_linear2phy(address, &found)) return std::nullopt;
  return found;
}

// Words are aligned, so in one page. What is not mapped would fault; a driver's mistake, and here ignored.
std::uint64_t BranchStore::load(std::uint64_t address) {
  std::uint64_t value = 0;
  if (const auto found = physical(address)) BX_MEM(0)->readPhysicalPage(&cpu_, *found, sizeof value, &value);
  return value;
}

void BranchStore::store(std::uint64_t address, std::uint64_t value) {
  if (const auto found = physical(address)) BX_MEM(0)->writePhysicalPage(&cpu_, *found, sizeof value, &value);
}

}  // namespace ptkit::emulated
