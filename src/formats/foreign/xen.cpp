// `xen-vmtrace DOMAIN VCPU > file`: the ring of a guest's trace. The file has no magic, so that Xen's
// settings apply only if the user names the format.
#include <utility>

#include "formats/common/files.h"
#include "formats/common/readers.h"
#include "ptkit/rtit_regs.h"
#include "trace/rtit_ctl.h"
#include "trace/warning_codes.h"

namespace ptkit::formats {

namespace {

// Bits that Xen lets a user of vmtrace set. DisRETC is unknown: compressed and uncompressed RETs are both
// decoded.
constexpr std::uint64_t kAllowed = std::uint64_t{1} << PT_CTL_TRACE_EN | std::uint64_t{1} << PT_CTL_OS |
                                   std::uint64_t{1} << PT_CTL_USER | std::uint64_t{1} << PT_CTL_TSC_EN |
                                   std::uint64_t{1} << PT_CTL_BRANCH_EN;

bool sniff(const std::string&) { return false; }

base::Result<trace::TraceBundle> with_settings(const std::string& path,
                                               base::Result<trace::TraceBundle> bundle) {
  if (!bundle.ok()) return bundle;
  trace::set_rtit_ctl(bundle.value().configuration, kAllowed);
  bundle.value().warnings.push_back(warn(trace::WarningCode::XEN_RING_LAPPED).at(path));
  return bundle;
}

base::Result<trace::TraceBundle> read(const std::string& path, const OpenOptions& options) {
  return with_settings(path, kRawFormat.read(path, options));
}

base::Result<trace::TraceBundle> read_bytes(const std::string& path, const trace::TraceBuffer& data,
                                            const OpenOptions& options) {
  return with_settings(path, kRawFormat.read_bytes(path, data, options));
}

}  // namespace

const Format kXenFormat{
    .name = "xen",
    .description = "a guest's stream by xen-vmtrace (never guessed: name it)",
    .sniff = &sniff,
    .read = &read,
    .read_bytes = &read_bytes,
    .unverified = true,
};

}  // namespace ptkit::formats
