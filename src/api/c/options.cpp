#include "api/c/options.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "packet/errata.h"
#include "trace/rtit_ctl.h"

namespace ptkit::api::c {
namespace {

// No version of a structure is larger: such a size was not set.
constexpr std::size_t kLargestStructure = 4096;
constexpr std::size_t kLargestMap = std::size_t{1} << 32U;
constexpr std::uint32_t kKnownFlags = PTKIT_RTIT_CTL_KNOWN | PTKIT_RESYNC_AT_PSB | PTKIT_BEGIN_ANYWHERE;
constexpr std::uint32_t kLayoutFlags = PTKIT_LAYOUT_FILE | PTKIT_LAYOUT_MEMORY;
constexpr std::uint32_t kKnownPlaceFlags = PTKIT_CR3_KNOWN | kLayoutFlags;

[[nodiscard]] base::Failure unsupported(const char* what, const char* structure = "options") {
  return {base::Status::UNSUPPORTED, 0,
          std::string(structure) + ": " + what + ", which this libptkit does not know; take a newer one"};
}

// A structure as far as both sides know it.
template <typename Structure>
[[nodiscard]] base::Result<Structure> known_part(const Structure& given, const char* name,
                                                 std::uint32_t known_flags) {
  if (auto failure = check_size(given.size, name)) return *std::move(failure);
  Structure known{};
  std::memcpy(&known, &given, std::min(given.size, sizeof known));
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&given);
  if (given.size > sizeof known &&
      std::any_of(bytes + sizeof known, bytes + given.size, [](unsigned char byte) { return byte != 0; }))
    return unsupported("a member after the last one is not 0", name);
  if ((known.flags & ~known_flags) != 0) return unsupported("a flag is set", name);
  if (std::any_of(std::begin(known.reserved), std::end(known.reserved), [](auto one) { return one != 0; }))
    return unsupported("a reserved member is not 0", name);
  return known;
}

[[nodiscard]] std::optional<base::Failure> set_ranges(const ptkit_options& options,
                                                      trace::Configuration& configuration) {
  for (std::size_t i = 0; i < std::size(options.ranges); ++i) {
    const ptkit_range& range = options.ranges[i];
    const std::string name = "options.ranges[" + std::to_string(i) + "]";
    if (range.reserved != 0) return unsupported("a reserved member of a range is not 0");
    if (range.kind > PTKIT_RANGE_STOP)
      return base::bad_config(name + ".kind is " + std::to_string(range.kind) +
                              "; it must be PTKIT_RANGE_OFF, _FILTER or _STOP");
    if (range.kind != PTKIT_RANGE_OFF && range.last < range.first)
      return base::bad_config(name + ": its last address is below its first one");
    configuration.ranges[i] = {static_cast<trace::RangeKind>(range.kind), range.first, range.last};
  }
  return std::nullopt;
}

[[nodiscard]] std::optional<base::Failure> set_processor(const ptkit_options& options,
                                                         trace::Configuration& configuration) {
  if (options.cpu_stepping > UINT8_MAX)
    return base::bad_config("options.cpu_stepping is " + std::to_string(options.cpu_stepping) +
                            "; it must be 0 to 255");
  if (options.cpu_family == 0) return std::nullopt;
  configuration.cpu.known = true;
  configuration.cpu.family = options.cpu_family;
  configuration.cpu.model = options.cpu_model;
  configuration.cpu.stepping = static_cast<std::uint8_t>(options.cpu_stepping);
  return std::nullopt;
}

}  // namespace

std::optional<base::Failure> check_size(std::size_t size, const char* structure) {
  if (size >= sizeof size && size <= kLargestStructure) return std::nullopt;
  return base::bad_config(std::string(structure) + ".size is " + std::to_string(size) +
                          "; set it to sizeof(ptkit_" + structure + ")");
}

void write_outcome(ptkit_outcome from, ptkit_outcome& to) noexcept {
  from.size = to.size;
  const std::size_t known = std::min(to.size, sizeof from);
  auto* const bytes = reinterpret_cast<unsigned char*>(&to);
  std::fill(bytes + known, bytes + from.size, static_cast<unsigned char>(0));
  std::memcpy(bytes, &from, known);
}

base::Result<Settings> read_options(const ptkit_options* options) {
  Settings settings;
  if (options == nullptr) {
    settings.flow.errata = packet::errata_for({});
    return settings;
  }
  const auto part = known_part(*options, "options", kKnownFlags);
  if (!part.ok()) return part.failure();
  const ptkit_options& given = part.value();
  if (given.map_size != 0) settings.map_size = given.map_size;
  if (!std::has_single_bit(settings.map_size) || settings.map_size > kLargestMap)
    return base::bad_config("options.map_size is " + std::to_string(given.map_size) +
                            "; it must be a power of two, 2^32 at most");
  if (given.rtit_ctl != 0 && (given.flags & PTKIT_RTIT_CTL_KNOWN) == 0)
    return base::bad_config("options.rtit_ctl is not 0: set PTKIT_RTIT_CTL_KNOWN in options.flags, too");
  if (auto failure = set_ranges(given, settings.configuration)) return *std::move(failure);
  if (auto failure = set_processor(given, settings.configuration)) return *std::move(failure);
  if ((given.flags & PTKIT_RTIT_CTL_KNOWN) != 0) trace::set_rtit_ctl(settings.configuration, given.rtit_ctl);
  settings.configuration.sync = (given.flags & PTKIT_BEGIN_ANYWHERE) == 0;
  settings.flow.resync = (given.flags & PTKIT_RESYNC_AT_PSB) != 0 ? flow::Resync::PSB : flow::Resync::IP;
  settings.flow.errata = packet::errata_for(settings.configuration.cpu);
  settings.read_code = given.read_code;
  settings.read_code_argument = given.read_code_argument;
  return settings;
}

base::Result<LoadLocation> read_location(const ptkit_place* place) {
  if (place == nullptr) return LoadLocation{};
  const auto part = known_part(*place, "place", kKnownPlaceFlags);
  if (!part.ok()) return part.failure();
  const ptkit_place& given = part.value();
  if ((given.flags & kLayoutFlags) == kLayoutFlags)
    return base::bad_config("place.flags: PTKIT_LAYOUT_FILE and PTKIT_LAYOUT_MEMORY exclude each other");
  if (given.cr3 != 0 && (given.flags & PTKIT_CR3_KNOWN) == 0)
    return base::bad_config("place.cr3 is not 0: set PTKIT_CR3_KNOWN in place.flags, too");
  LoadLocation found;
  if (given.address != PTKIT_AS_LINKED) found.address = given.address;
  if ((given.flags & PTKIT_CR3_KNOWN) != 0) found.cr3 = given.cr3;
  if ((given.flags & PTKIT_LAYOUT_FILE) != 0) found.layout = code::image::PeLayout::FILE;
  if ((given.flags & PTKIT_LAYOUT_MEMORY) != 0) found.layout = code::image::PeLayout::MEMORY;
  return found;
}

}  // namespace ptkit::api::c
