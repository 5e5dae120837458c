#include "capture/common/record_options.h"

#include <bit>
#include <filesystem>

#include "base/file_path.h"
#include "capture/common/errors.h"

namespace ptkit::capture {

namespace {

constexpr std::uint32_t kMinPsbPeriod = 2048;
constexpr std::uint32_t kMaxPsbPeriod = kMinPsbPeriod << 15U;
constexpr unsigned kMaxField = 15;  // MTCFreq and CycThresh have 4 bits

std::optional<base::Failure> check_periods(const RecordOptions& options) {
  if (!std::has_single_bit(options.psb_period) || options.psb_period < kMinPsbPeriod ||
      options.psb_period > kMaxPsbPeriod) {
    return invalid_option("psb_period: expected a power of two from 2048 to 67108864 bytes, found " +
                          std::to_string(options.psb_period));
  }
  if (options.mtc_period > kMaxField)
    return invalid_option("mtc_period: expected 0 to 15, found " + std::to_string(options.mtc_period));
  if (options.cyc_threshold > kMaxField)
    return invalid_option("cyc_threshold: expected 0 to 15, found " + std::to_string(options.cyc_threshold));
  return {};
}

std::optional<base::Failure> check_filters(const RecordOptions& options) {
  for (const FilterRequest& filter : options.filters) {
    if (filter.symbol.empty() && filter.first > filter.last &&
        (filter.kind == FilterRequest::Kind::FILTER || filter.kind == FilterRequest::Kind::TRACESTOP)) {
      return invalid_option("filters: expected a range with first <= last, found " +
                            std::to_string(filter.first) + " to " + std::to_string(filter.last));
    }
  }
  for (const TriggerRequest& trigger : options.triggers) {
    if (trigger.count == 0) return invalid_option("triggers: expected a count of at least 1, found 0");
    if (trigger.event == TriggerRequest::Event::SYMBOL && trigger.symbol.empty())
      return invalid_option("triggers: expected a function name, found nothing");
    if (trigger.action == TriggerRequest::Action::SNAPSHOT && options.ring_bytes == 0)
      return invalid_option("triggers: a snapshot needs ring mode; set ring_bytes");
  }
  return {};
}

}  // namespace

std::optional<base::Failure> check(const RecordOptions& options) {
  const bool needed = options.hardware.needs_program() || !options.argv.empty();
  if (needed && (options.argv.empty() || options.argv.front().empty()))
    return invalid_option("argv: expected a program, found nothing");
  if (options.output.empty())
    return invalid_option("output: expected the path of the bundle to write, found nothing");
  if (auto failure = check_periods(options)) return failure;
  if (auto failure = check_filters(options)) return failure;
  for (const std::string& folder : {options.truth_folder, options.transfers_folder}) {
    std::error_code ignored;
    if (!folder.empty() && !std::filesystem::is_directory(base::to_path(folder), ignored))
      return base::Failure{base::Status::IO_ERROR, 0, folder + ": expected a folder for the execution log"};
  }
  return {};
}

}  // namespace ptkit::capture
