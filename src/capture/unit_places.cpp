#include "capture/unit_places.h"

#include "formats/files.h"
#include "formats/registry.h"

namespace ptkit::capture {

namespace {

constexpr const char* kByTime =
    "Who ran is told by time alone, so that at switches some kernel code may be given to the other thread: ";

}  // namespace

std::vector<std::string> add_places(BundleOutput& output, formats::SwitchPlacing placing) {
  output.flush();
  if (output.failed()) return {};  // which is told by others
  if (!formats::is_file(output.path()))
    return {kByTime + std::string("what was written cannot be read again.")};
  auto opened = formats::open(output.path(), {.format = "ptk"});
  if (!opened.ok()) return {kByTime + opened.failure().detail + "."};
  trace::TraceBundle& bundle = opened.value();
  bundle.warnings.clear();  // it has no end yet
  placing.processes.resize(bundle.spaces.size());
  if (!formats::place_switches(bundle, placing))
    return {kByTime + std::string("ptkit was interrupted while it looked for changes of page tables.")};
  for (std::size_t i = 0; i < bundle.streams.size(); ++i) {
    if (bundle.streams[i].switches_by_offset) output.places(static_cast<std::uint32_t>(i), bundle.streams[i]);
  }
  return std::move(bundle.warnings);
}

}  // namespace ptkit::capture
