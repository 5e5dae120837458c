#include "capture/linux/session/switch_alignment.h"

#include "formats/common/files.h"
#include "formats/registry.h"
#include "trace/warning_codes.h"

namespace ptkit::capture {

using trace::WarningCode;

std::vector<trace::Warning> add_switch_offsets(BundleOutput& output, processes::SwitchAlignment options) {
  output.flush();
  if (output.failed()) return {};  // output.finish() reports it
  if (!formats::is_file(output.path())) return {warn(WarningCode::PIP_NO_FILE)};
  auto opened = formats::open(output.path(), {.format = "ptk"});
  if (!opened.ok()) return {warn(WarningCode::PIP_UNREADABLE, opened.failure().detail)};
  trace::TraceBundle& bundle = opened.value();
  bundle.warnings.clear();  // the reader warns that the unfinished bundle has no end
  options.processes.resize(bundle.spaces.size());
  if (!processes::align_switches_to_pips(bundle, options)) return {warn(WarningCode::PIP_INTERRUPTED)};
  for (std::size_t i = 0; i < bundle.streams.size(); ++i) {
    if (bundle.streams[i].switches_by_offset)
      output.switch_offsets(static_cast<std::uint32_t>(i), bundle.streams[i]);
  }
  return std::move(bundle.warnings);
}

}  // namespace ptkit::capture
