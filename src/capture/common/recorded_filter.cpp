#include "capture/common/recorded_filter.h"

#include <algorithm>

#include "ptkit/rtit_regs.h"

namespace ptkit::capture {

void set_ranges(std::span<const trace::AddressRange> ranges, trace::Configuration& out) {
  out.ranges_known = true;
  for (std::size_t i = 0; i < std::min(ranges.size(), out.ranges.size()); ++i) {
    out.ranges[i] = ranges[i];
    out.rtit_ctl |= static_cast<std::uint64_t>(ranges[i].kind)
                    << (PT_CTL_ADDR0_CFG_SHIFT + PT_CTL_ADDR_CFG_WIDTH * i);
  }
}

}  // namespace ptkit::capture
