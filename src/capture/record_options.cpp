#include "capture/record_options.h"

#include <sys/stat.h>

#include <bit>

#include "capture/refusals.h"

namespace ptkit::capture {

namespace {

constexpr std::uint32_t kMinPsbPeriod = 2048;
constexpr std::uint32_t kMaxPsbPeriod = kMinPsbPeriod << 15U;
constexpr unsigned kMaxField = 15;  // of MTCFreq and CycThresh

std::optional<base::Failure> check_unit(const RecordOptions& options) {
  if (!std::has_single_bit(options.psb_period) || options.psb_period < kMinPsbPeriod ||
      options.psb_period > kMaxPsbPeriod) {
    return bad("psb_period: expected a power of two from 2048 to 67108864 bytes, found " +
               std::to_string(options.psb_period));
  }
  if (options.mtc_period > kMaxField)
    return bad("mtc_period: expected 0 to 15, found " + std::to_string(options.mtc_period));
  if (options.cyc_threshold > kMaxField)
    return bad("cyc_threshold: expected 0 to 15, found " + std::to_string(options.cyc_threshold));
  return {};
}

std::optional<base::Failure> check_conditions(const RecordOptions& options) {
  for (const FilterRequest& filter : options.filters) {
    if (filter.symbol.empty() && filter.first > filter.last &&
        (filter.kind == FilterRequest::Kind::FILTER || filter.kind == FilterRequest::Kind::TRACESTOP)) {
      return bad("filters: expected a range that ends behind its begin, found " +
                 std::to_string(filter.first) + " to " + std::to_string(filter.last));
    }
  }
  for (const TriggerRequest& trigger : options.triggers) {
    if (trigger.count == 0) return bad("triggers: expected a count of 1 at least, found 0");
    if (trigger.event == TriggerRequest::Event::SYMBOL && trigger.symbol.empty())
      return bad("triggers: expected the name of a function, found nothing");
    if (trigger.action == TriggerRequest::Action::SNAPSHOT && options.ring_bytes == 0)
      return bad("triggers: a snapshot is of a ring; set ring_bytes");
  }
  return {};
}

}  // namespace

std::optional<base::Failure> check(const RecordOptions& options) {
  const bool needed = options.hardware.needs_program() || !options.argv.empty();
  if (needed && (options.argv.empty() || options.argv.front().empty()))
    return bad("argv: expected a program, found nothing");
  if (options.output.empty()) return bad("output: expected the path of the bundle to write, found nothing");
  if (auto failure = check_unit(options)) return failure;
  if (auto failure = check_conditions(options)) return failure;
  struct stat info {};
  if (!options.truth_folder.empty() &&
      (::stat(options.truth_folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode))) {
    return base::Failure{base::Status::IO_ERROR, 0,
                         options.truth_folder + ": expected a folder for the log of instructions"};
  }
  return {};
}

}  // namespace ptkit::capture
