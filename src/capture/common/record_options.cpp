#include "capture/common/record_options.h"

#include <bit>
#include <filesystem>
#include <type_traits>

#include "base/file_path.h"
#include "capture/common/errors.h"

namespace ptkit::capture {

namespace {

using Problem = std::optional<base::Failure>;

Problem check_number(const OptionInfo& info, std::uint64_t value) {
  const bool power = info.kind == OptionKind::POWER_OF_TWO;
  if (value >= info.least && value <= info.most && (!power || std::has_single_bit(value))) return {};
  std::string text(info.name);
  text.append(": expected ").append(power ? "a power of two from " : "").append(std::to_string(info.least));
  text.append(" to ").append(std::to_string(info.most));
  if (!info.unit.empty()) text.append(" ").append(info.unit);
  return invalid_option(text.append(", found ").append(std::to_string(value)));
}

template <typename T>
Problem check_range(const OptionInfo& info, const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return {};
  } else if constexpr (std::is_integral_v<T>) {
    return check_number(info, static_cast<std::uint64_t>(value));
  } else if constexpr (std::is_same_v<T, std::chrono::milliseconds>) {
    return check_number(info, static_cast<std::uint64_t>(value.count()));
  } else if constexpr (std::is_same_v<T, std::optional<std::uint8_t>>) {
    return check_number(info, *value);
  } else if constexpr (std::is_same_v<T, Levels>) {
    if (!value.user && !value.kernel)
      return invalid_option("levels: expected user, kernel or both, found neither");
  } else if constexpr (std::is_same_v<T, Cpus>) {
    for (const std::uint32_t cpu : value.numbers) {
      if (auto failure = check_number(info, cpu)) return failure;
    }
  }
  return {};
}

// Calls `visit(info, value)` for each option that was given: its value is not the default.
template <typename Visit>
void for_each_given(const RecordOptions& options, const Visit& visit) {
  const RecordOptions presets;
  const OptionInfo* info = kRecordOptions.data();
  const auto compare = [&](const auto& value, const auto& preset) {
    if (!(value == preset)) visit(*info, value);
    ++info;
  };
#define PTKIT_OPTION(name, ...) compare(options.name, presets.name);
#include "capture/common/record_options.def"
}

// "leave it out, or use the back end emulator or step".
std::string remedy_without(const OptionInfo& info) {
  std::string names;
  for (std::size_t one = 0; one < kBackendNames.size(); ++one) {
    if ((info.back_ends >> one & 1U) != 0)
      names += (names.empty() ? ", or use the back end " : " or ") + std::string(kBackendNames[one]);
  }
  return "leave it out" + ((info.systems & kThisSystem) == 0 ? std::string() : names);
}

Problem check_options(const RecordOptions& options) {
  if (const OptionInfo* missing = missing_option(options, kThisSystem); missing != nullptr) {
    return unsupported(std::string(missing->name) + ": the back end \"" +
                       kBackendNames[static_cast<std::size_t>(options.backend)] +
                       "\" does not have this option; " + remedy_without(*missing));
  }
  Problem failure;
  for_each_given(options, [&failure](const OptionInfo& info, const auto& value) {
    if (!failure) failure = check_range(info, value);
  });
  return failure;
}

Problem check_filters(const RecordOptions& options) {
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
    if (trigger.action == TriggerRequest::Action::SNAPSHOT && options.ring == 0)
      return invalid_option("triggers: a snapshot needs ring mode; set ring");
  }
  return {};
}

Problem check_logs(const RecordOptions& options) {
  const bool logs = options.backend == Backend::EMULATOR || options.backend == Backend::STEP;
  if (!options.transfers_folder.empty() && options.backend != Backend::EMULATOR)
    return unsupported("transfers: only the emulator writes a log of transfers; use the back end emulator");
  for (const std::string& folder : {options.truth_folder, options.transfers_folder}) {
    if (folder.empty()) continue;
    if (!logs)
      return unsupported("truth: a processor writes no log of instructions; use the back end emulator");
    std::error_code ignored;
    if (!std::filesystem::is_directory(base::to_path(folder), ignored))
      return base::Failure{base::Status::IO_ERROR, 0, folder + ": expected a folder for the execution log"};
  }
  return {};
}

}  // namespace

const OptionInfo* missing_option(const RecordOptions& options, unsigned system) {
  const OptionInfo* missing = nullptr;
  const auto backend = static_cast<unsigned>(options.backend);
  for_each_given(options, [&](const OptionInfo& info, const auto& /*value*/) {
    const bool has = (info.systems & system) != 0 && (info.back_ends >> backend & 1U) != 0;
    if (!has && missing == nullptr) missing = &info;
  });
  return missing;
}

std::optional<base::Failure> check(const RecordOptions& options) {
  const bool needed = options.needs_program() || !options.argv.empty();
  if (needed && (options.argv.empty() || options.argv.front().empty()))
    return invalid_option("argv: expected a program, found nothing");
  if (options.output.empty())
    return invalid_option("output: expected the path of the bundle to write, found nothing");
  if (auto failure = check_options(options)) return failure;
  if (auto failure = check_filters(options)) return failure;
  return check_logs(options);
}

}  // namespace ptkit::capture
