// Options of all recorders, and the result of a recording.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/system/owner.h"
#include "capture/common/option_info.h"
#include "trace/warning.h"

namespace ptkit::capture {

// Time from SIGINT to SIGKILL when a recorder ends the program.
inline constexpr std::chrono::milliseconds kExitTime{5000};

// Address filters as in perf. Ends are inclusive.
struct FilterRequest {
  enum class Kind : std::uint8_t {
    FILTER,     // ADDRn_CFG = 1: only code in the range is traced
    TRACESTOP,  // ADDRn_CFG = 2: a branch into the range ends tracing permanently
    START,      // executing `first` begins tracing; before that it is off
    STOP,       // executing `first` ends tracing until a START
  };
  Kind kind = Kind::FILTER;
  std::string file;  // path or base name of a mapped file; `first`, `last` are then offsets in the file
  // A function of `file`, or of any file if `file` is empty. The range is the function, or begins there.
  std::string symbol;
  std::uint64_t first = 0;  // without symbol
  std::uint64_t last = 0;   // FILTER and TRACESTOP

  bool operator==(const FilterRequest&) const = default;
};

// An action at the count-th occurrence of an event.
struct TriggerRequest {
  enum class Event : std::uint8_t { SYMBOL, ADDRESS, SIGNAL };  // SIGNAL: the program receives a signal
  enum class Action : std::uint8_t {
    START,     // recording is off until the event
    STOP,      // recording ends; the program continues
    SNAPSHOT,  // ring mode: the ring is written to the bundle
  };
  Event event = Event::SYMBOL;
  Action action = Action::STOP;
  std::string file;  // as in FilterRequest
  std::string symbol;
  std::uint64_t address = 0;  // ADDRESS
  int signal = 0;             // SIGNAL
  std::uint64_t count = 1;

  bool operator==(const TriggerRequest&) const = default;

  // Whether the action is due at this number of occurrences. START and STOP fire once, SNAPSHOT each `count`
  // times.
  [[nodiscard]] bool should_fire(std::uint64_t times) const noexcept {
    return action == Action::SNAPSHOT ? times % count == 0 : times == count;
  }
};

// The contents of a recording's streams.
enum class Recorded : std::uint8_t {
  PACKETS,  // Processor Trace
  BTS,      // Branch Trace Store: a record of each taken branch
  LBR,      // branch stacks (LBR) of samples
};

// Options that are sets of names. Users write the names.
struct TimingPackets {
  bool tsc = true;
  bool mtc = true;
  bool cyc = false;
  static constexpr std::array kNames{std::pair{"tsc", &TimingPackets::tsc},
                                     std::pair{"mtc", &TimingPackets::mtc},
                                     std::pair{"cyc", &TimingPackets::cyc}};
  bool operator==(const TimingPackets&) const = default;
};
struct MorePackets {
  bool ptwrite = false;
  bool power = false;
  bool events = false;
  static constexpr std::array kNames{std::pair{"ptwrite", &MorePackets::ptwrite},
                                     std::pair{"power", &MorePackets::power},
                                     std::pair{"events", &MorePackets::events}};
  [[nodiscard]] bool any() const noexcept { return ptwrite || power || events; }
  bool operator==(const MorePackets&) const = default;
};
struct Levels {
  bool user = true;     // code with CPL > 0
  bool kernel = false;  // code with CPL 0
  bool operator==(const Levels&) const = default;
};
inline constexpr std::array<std::pair<const char*, Levels>, 3> kLevels{
    {{"user", {true, false}}, {"kernel", {false, true}}, {"both", {true, true}}}};
struct Cpus {
  bool all = false;
  std::vector<std::uint32_t> numbers;
  bool operator==(const Cpus&) const = default;
};

// The options of record_options.def are members.
struct RecordOptions {
  Backend backend = Backend::DRIVER;
  std::vector<std::string> argv;  // the program (searched for in PATH) and its arguments
  std::string output;             // path of the bundle
#define PTKIT_OPTION(name, kind, type, preset, ...) type name = preset;
#include "capture/common/record_options.def"
  std::string qemu;                  // emulator: the program
  std::string plugin;                // emulator: the plugin's file
  std::uint64_t sideband_bytes = 0;  // driver: per processor; 0: default
  // For tests. Folder of the execution logs; empty: none. stream-N.u64 has the IP of each instruction of
  // stream N, in order. The emulator also writes stream-N.branches: IP and exact time (u64 each) of each
  // branch.
  std::string truth_folder;
  // For tests of the emulator: folder of stream-N.transfers (capture/linux/encode/execution_log.h); empty:
  // none.
  std::string transfers_folder;

  [[nodiscard]] const std::string& log_folder() const noexcept {  // empty: no logs
    return truth_folder.empty() ? transfers_folder : truth_folder;
  }
  [[nodiscard]] bool whole_cpus() const noexcept { return cpus.all || !cpus.numbers.empty(); }
  [[nodiscard]] bool needs_program() const noexcept { return pid == 0 && !whole_cpus(); }
  [[nodiscard]] Recorded recorded() const noexcept {
    if (!branch_stack.empty()) return Recorded::LBR;
    return bts ? Recorded::BTS : Recorded::PACKETS;
  }
  // Timing packets and MTCFreq, which have defaults for each back end.
  [[nodiscard]] TimingPackets timing_packets() const noexcept {
    return timing.value_or(TimingPackets{.cyc = backend == Backend::STEP});
  }
  [[nodiscard]] std::uint8_t mtc_freq() const noexcept {
    return mtc_period.value_or(backend == Backend::STEP ? 8 : 3);
  }
};

struct RecordResult {
  int exit_status = 0;  // the program's exit status, or 128 + signal
  std::uint64_t instructions = 0;
  std::uint64_t branches = 0;  // 0: the back end does not count them
  std::uint32_t streams = 0;
  std::uint64_t trace_bytes = 0;  // trace bytes in the bundle
  std::uint64_t bundle_bytes = 0;
  std::uint64_t dropped_bytes = 0;  // ring mode: trace that was overwritten
  std::uint32_t snapshots = 0;
  bool interrupted = false;     // Recorder::stop() ended it
  bool limited = false;         // max_instructions or a trigger ended it
  std::uint32_t unmatched = 0;  // filters and triggers of code that no process executed; each has a warning
  std::vector<trace::Warning> warnings;
};

// Sets of names: none of them; one more, or false if there is no such name; all names, as "tsc,mtc,cyc".
template <typename Names>
[[nodiscard]] Names no_names() {
  Names out;
  for (const auto& [name, member] : Names::kNames) out.*member = false;
  return out;
}
template <typename Names>
[[nodiscard]] bool add_name(Names& out, std::string_view text) {
  for (const auto& [name, member] : Names::kNames) {
    if (text == name) return out.*member = true;
  }
  return false;
}
template <typename Names>
[[nodiscard]] std::string all_names() {
  std::string out;
  for (const auto& [name, member] : Names::kNames) {
    if (!out.empty()) out += ',';
    out += name;
  }
  return out;
}

// Calls `visit(info, member)` for each option of record_options.def.
template <typename Options, typename Visit>
void for_each_option(Options& options, Visit&& visit) {
  const OptionInfo* info = kRecordOptions.data();
#define PTKIT_OPTION(name, ...) visit(*info++, options.name);
#include "capture/common/record_options.def"
}

// The first given option that the back end does not have, or not on a system (kLinux, kWindows); null: none.
[[nodiscard]] const OptionInfo* missing_option(const RecordOptions& options, unsigned system);
// Checks the options: that the back end has them, their ranges, and that they go together. nullopt: valid.
[[nodiscard]] std::optional<base::Failure> check(const RecordOptions& options);

}  // namespace ptkit::capture
