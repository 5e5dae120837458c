#include "ptmodel/filters.h"

namespace ptkit::ptmodel {

void Filters::configure(const Registers& registers) noexcept {
  *this = Filters{};
  os_ = registers.ctl_bit(PT_CTL_OS);
  user_ = registers.ctl_bit(PT_CTL_USER);
  by_cr3_ = registers.ctl_bit(PT_CTL_CR3_FILTER);
  cr3_match_ = registers.cr3_match();
  for (unsigned n = 0; n < registers.capabilities().ranges(); ++n) {
    const Range range{registers.addr(n, 0), registers.addr(n, 1)};
    if (registers.addr_cfg(n) == PT_ADDR_CFG_FILTER) traced_.add(range);
    if (registers.addr_cfg(n) == PT_ADDR_CFG_TRACE_STOP) stops_.add(range);
  }
}

}  // namespace ptkit::ptmodel
