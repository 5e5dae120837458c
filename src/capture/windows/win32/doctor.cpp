#include "capture/windows/win32/doctor.h"

#include <span>

#include "capture/device/config.h"
#include "capture/windows/descriptions.h"
#include "capture/windows/win32/device.h"
#include "capture/windows/win32/machine.h"

namespace ptkit::capture::win32 {

namespace {

using Lines = std::vector<std::string>;

void add(Lines& out, std::span<const capture::Description> all, std::uint64_t bits) {
  for (const capture::Description& one : all)
    out.push_back(((bits & one.code) != 0 ? "  yes  " : "  no   ") + std::string(one.text));
}

std::string version_text(std::uint32_t version) {
  return std::to_string(version >> 16U) + '.' + std::to_string(version >> 8U & 0xffU) + '.' +
         std::to_string(version & 0xffU);
}

void add_query(Lines& out, const ptkit_windows_query& query) {
  const ptkit_query& common = query.query;
  out.push_back("driver:     version " + version_text(common.driver_version));
  out.push_back("processors: " + std::to_string(common.cpus) + ", TSC of " + std::to_string(common.tsc_khz) +
                " kHz, " + std::to_string(capture::capabilities_of(common).ranges()) + " address ranges");
  out.push_back("buffers:    up to " + std::to_string(common.most_bytes) + " bytes for each processor");
  out.emplace_back("what driver and processor can do:");
  add(out, capture::feature_descriptions(), common.features);
  out.emplace_back("what this Windows is like:");
  add(out, capture::system_descriptions(), query.system);
}

base::Result<ptkit_windows_query> query_loaded_driver() {
  enable_privileges();
  auto device = Device::open();
  if (!device.ok()) return device.failure();
  return capture::query_driver(*device.value());
}

}  // namespace

Findings examine() {
  Findings found;
  found.lines.push_back("machine:    " + this_machine().name);
  const auto query = query_loaded_driver();
  if (!query.ok()) {
    found.problem = query.failure().detail;
    found.lines.push_back("driver:     " + found.problem);
    return found;
  }
  found.query = query.value();
  add_query(found.lines, query.value());
  if (query.value().reason != PTKIT_REASON_NONE) found.problem = capture::reason_text(query.value().reason);
  found.lines.push_back(capture::recording_text(query.value()));
  return found;
}

}  // namespace ptkit::capture::win32
