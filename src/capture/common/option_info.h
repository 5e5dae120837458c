// The rows of record_options.def as data, and what their columns mean.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace ptkit::capture {

enum class Backend : std::uint8_t { PERF, DRIVER, EMULATOR, STEP };  // best first
inline constexpr std::array<const char*, 4> kBackendNames{"perf", "driver", "emulator", "step"};
// As bits.
inline constexpr unsigned kPerf = 1U << static_cast<unsigned>(Backend::PERF);
inline constexpr unsigned kDriver = 1U << static_cast<unsigned>(Backend::DRIVER);
inline constexpr unsigned kEmulator = 1U << static_cast<unsigned>(Backend::EMULATOR);
inline constexpr unsigned kStep = 1U << static_cast<unsigned>(Backend::STEP);
inline constexpr unsigned kUnits = kPerf | kDriver;  // those that use the processor's trace unit
inline constexpr unsigned kAnyBackend = kUnits | kEmulator | kStep;

inline constexpr unsigned kLinux = 1;
inline constexpr unsigned kWindows = 2;
inline constexpr unsigned kAnySystem = kLinux | kWindows;
#ifdef _WIN32
inline constexpr unsigned kThisSystem = kWindows;
#else
inline constexpr unsigned kThisSystem = kLinux;
#endif

// How users write the value of an option.
#define PTKIT_OPTION_KINDS(X)                                                 \
  X(FLAG) /* true or false; on a command line: the opposite of the default */ \
  X(NUMBER)                                                                   \
  X(POWER_OF_TWO)                                                             \
  X(SIZE)     /* bytes: 65536, "64K" */                                       \
  X(DURATION) /* seconds */                                                   \
  X(TEXT)     /* ASCII */                                                     \
  X(WORD)                                                                     \
  X(CHOICE) /* one of some names */                                           \
  X(NAMES)  /* any of some names */                                           \
  X(CPUS)   /* "0,2-3", or all */                                             \
  X(FILTERS)                                                                  \
  X(TRIGGERS)                                                                 \
  X(BRANCHES) /* kinds of branches; true: any */                              \
  X(USER)     /* name or number of a user */

enum class OptionKind : std::uint8_t {
#define X(name) name,
  PTKIT_OPTION_KINDS(X)
#undef X
};
inline constexpr std::array kOptionKindNames{
#define X(name) #name,
    PTKIT_OPTION_KINDS(X)
#undef X
};

// Sections of the help. RARE_ ones are in the long help alone.
enum class OptionSection : std::uint8_t {
  GENERAL,
  SCOPE,
  PACKETS,
  UNITS,
  RARE_GENERAL,
  RARE_PACKETS,
  RARE_UNITS
};
inline constexpr std::array<const char*, 4> kSectionNames{"general", "scope", "packets", "units"};
[[nodiscard]] constexpr bool is_rare(OptionSection section) noexcept {
  return section >= OptionSection::RARE_GENERAL;
}
[[nodiscard]] constexpr OptionSection section_of(OptionSection section) noexcept {
  constexpr OptionSection kCommon[] = {OptionSection::GENERAL, OptionSection::PACKETS, OptionSection::UNITS};
  return is_rare(section) ? kCommon[static_cast<int>(section) - static_cast<int>(OptionSection::RARE_GENERAL)]
                          : section;
}

struct OptionInfo {
  std::string_view name;
  OptionKind kind = OptionKind::FLAG;
  std::string_view preset;  // the default, as C++ writes it
  std::uint64_t least = 0;
  std::uint64_t most = 0;
  std::string_view unit;
  unsigned back_ends = 0;
  unsigned systems = 0;
  std::string_view flags;  // "-p --pid"
  std::string_view metavar;
  OptionSection section = OptionSection::GENERAL;
  std::string_view help;
  std::string_view details;
};

#define PTKIT_OPTION_INFO(name, kind, type, preset, least, most, unit, back_ends, systems, flags, metavar, \
                          section, help, details)                                                          \
  OptionInfo{#name,   OptionKind::kind,       #preset, least,  most, unit, back_ends, systems, flags,      \
             metavar, OptionSection::section, help,    details},

inline constexpr std::array kCallerOptions{
#define PTKIT_CALLER_OPTION(...) PTKIT_OPTION_INFO(__VA_ARGS__)
#include "capture/common/record_options.def"
};
inline constexpr std::array kRecordOptions{
#define PTKIT_OPTION(...) PTKIT_OPTION_INFO(__VA_ARGS__)
#include "capture/common/record_options.def"
};

#undef PTKIT_OPTION_INFO

}  // namespace ptkit::capture
