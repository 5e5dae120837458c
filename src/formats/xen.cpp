// `xen-vmtrace DOMAIN VCPU > file`: a guest's trace as Xen's ring had it. Nothing in the file says so: only
// who names this format gets what Xen's settings imply.
#include <utility>

#include "formats/files.h"
#include "formats/readers.h"
#include "ptkit/rtit_regs.h"

namespace ptkit::formats {

namespace {

// What Xen lets a user of vmtrace switch on. RETs are read in either form, whatever DisRETC was.
constexpr std::uint64_t kAllowed = std::uint64_t{1} << PT_CTL_TRACE_EN | std::uint64_t{1} << PT_CTL_OS |
                                   std::uint64_t{1} << PT_CTL_USER | std::uint64_t{1} << PT_CTL_TSC_EN |
                                   std::uint64_t{1} << PT_CTL_BRANCH_EN;

bool sniff(const std::string&) { return false; }

base::Result<trace::TraceBundle> with_settings(const std::string& path,
                                               base::Result<trace::TraceBundle> bundle) {
  if (!bundle.ok()) return bundle;
  bundle.value().configuration.rtit_ctl = kAllowed;
  bundle.value().configuration.rtit_ctl_known = true;
  bundle.value().warnings.push_back(
      path +
      ": Xen does not tell where its ring was lapped before it was read (10 times a second): bytes "
      "that do not fit may be such places. Which of OS, User, TSC and DisRETC were on is not in the file.");
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
    "xen", "a guest's stream by xen-vmtrace (never guessed: name it)", &sniff, &read, nullptr, &read_bytes};

}  // namespace ptkit::formats
