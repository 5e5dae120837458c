// Options of all recorders, and the result of a recording.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/system/owner.h"
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

// Options of the back ends that use the processor: ptkit's driver and perf.
struct HardwareOptions {
  Recorded recorded = Recorded::PACKETS;
  std::string stack_kinds = "any";     // LBR: which branches, as perf record -j names them
  std::uint64_t sample_period = 0;     // LBR: cycles between samples; 0: by frequency
  std::uint64_t sample_frequency = 0;  // LBR: samples a second; 0: what is usual
  bool user = true;                    // code with CPL > 0
  bool kernel = false;                 // code with CPL 0
  bool ptwrite = false;
  bool power = false;
  bool events = false;
  // The user did not set the timing packets or the MTC period. If the processor has no MTC packets, none are
  // recorded. If the processor does not have the period, another period is used.
  bool usual_timing = false;
  bool usual_mtc_period = false;
  bool per_thread = false;           // one buffer per thread instead of one per processor
  std::string event;                 // perf: event terms that override the options
  bool single_range = false;         // single-range output instead of ToPA; needs a ring
  bool children = true;              // trace the children of the process, too
  int pid = 0;                       // a running process
  bool all_cpus = false;             // trace all processors
  std::vector<std::uint32_t> cpus;   // trace these processors
  std::uint64_t buffer_bytes = 0;    // per processor; 0: default
  std::uint64_t sideband_bytes = 0;  // per processor; 0: default
  std::uint64_t limit_ms = 0;        // duration of the recording; 0: no limit

  [[nodiscard]] bool whole_cpus() const noexcept { return all_cpus || !cpus.empty(); }
  [[nodiscard]] bool needs_program() const noexcept { return pid == 0 && !whole_cpus(); }
};

struct RecordOptions {
  std::vector<std::string> argv;  // the program (searched for in PATH) and its arguments
  std::string output;             // path of the bundle
  // Folder of the execution logs; empty: none. stream-N.u64 has the IP of each instruction of stream N, in
  // order. The emulator also writes stream-N.branches: IP and exact time (u64 each) of each branch.
  std::string truth_folder;
  // Emulator: folder of stream-N.transfers (capture/linux/encode/transfer_log.h); empty: none.
  std::string transfers_folder;
  [[nodiscard]] const std::string& log_folder() const noexcept {  // empty: no logs
    return truth_folder.empty() ? transfers_folder : truth_folder;
  }
  bool return_compression = true;
  bool tsc = true;
  bool mtc = true;
  bool cyc = true;
  bool tnt_64 = false;                                     // use long TNT packets where they save bytes
  std::uint32_t psb_period = 4096;                         // bytes: a power of two, at least 2048
  std::uint8_t mtc_period = 8;                             // MTCFreq
  std::uint8_t cyc_threshold = 0;                          // CycThresh
  bool quiet = false;                                      // the program's standard output is discarded
  bool redact = false;                                     // no paths, no command line in the bundle
  bool debug = false;                                      // keep source lines and inlined functions
  std::optional<base::Owner> owner = base::sudo_caller();  // owner of the complete bundle
  std::uint64_t max_instructions = 0;  // recording ends after so many, the program continues; 0: no limit
  std::uint64_t ring_bytes = 0;        // ring mode: size of the trace ring; 0: off
  std::vector<FilterRequest> filters;
  std::vector<TriggerRequest> triggers;
  std::string qemu;    // emulator: the program
  std::string plugin;  // emulator: the plugin's file
  HardwareOptions hardware;
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
  bool interrupted = false;     // request_stop() ended it
  bool limited = false;         // max_instructions or a trigger ended it
  std::uint32_t unmatched = 0;  // filters and triggers at places that no process executed; each has a warning
  std::vector<trace::Warning> warnings;
};

// Checks the options. nullopt: valid.
[[nodiscard]] std::optional<base::Failure> check(const RecordOptions& options);

// The progress of a running recording.
struct RecordProgress {
  std::uint64_t instructions = 0;
  std::uint64_t trace_bytes = 0;
};

}  // namespace ptkit::capture
