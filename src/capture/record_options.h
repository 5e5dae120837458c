// What every back end that runs a program itself is told, and what comes of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/new_file.h"
#include "base/status.h"

namespace ptkit::capture {

// Address filters, as perf has them. Ends are inclusive.
struct FilterRequest {
  enum class Kind : std::uint8_t {
    FILTER,     // ADDRn_CFG = 1: only code in the range is traced
    TRACESTOP,  // ADDRn_CFG = 2: tracing ends where it is entered, for good
    START,      // tracing begins where `first` is executed; until then it is off
    STOP,       // tracing ends where `first` is executed, until a START
  };
  Kind kind = Kind::FILTER;
  std::string file;  // path or base name of a mapped file; `first`, `last` are then offsets in the file
  std::string
      symbol;  // of `file`, or of any file if that is empty: the range is the function, or begins there
  std::uint64_t first = 0;  // without symbol
  std::uint64_t last = 0;   // FILTER and TRACESTOP
};

// Something that happens `count` times, and what is done then.
struct TriggerRequest {
  enum class Event : std::uint8_t { SYMBOL, ADDRESS, SIGNAL };  // SIGNAL: one that the program gets
  enum class Action : std::uint8_t {
    START,     // recording is off until then
    STOP,      // recording ends; the program runs on
    SNAPSHOT,  // ring mode: what is in the ring is kept
  };
  Event event = Event::SYMBOL;
  Action action = Action::STOP;
  std::string file;  // as in FilterRequest
  std::string symbol;
  std::uint64_t address = 0;  // ADDRESS
  int signal = 0;             // SIGNAL
  std::uint64_t count = 1;

  // Whether it is, when it has happened so often: recording begins and ends once, snapshots are many.
  [[nodiscard]] bool is_due(std::uint64_t times) const noexcept {
    return action == Action::SNAPSHOT ? times % count == 0 : times == count;
  }
};

// What a stream is made of.
enum class Recorded : std::uint8_t {
  PACKETS,  // Processor Trace
  STORE,    // Branch Trace Store: a record of each taken branch
  STACKS,   // branch stacks (LBR) of samples
};

// What only back ends are told that have the processor trace.
struct HardwareOptions {
  Recorded recorded = Recorded::PACKETS;
  std::string stack_kinds = "any";     // STACKS: which branches, as perf record -j names them
  std::uint64_t sample_period = 0;     // STACKS: cycles between samples; 0: by frequency
  std::uint64_t sample_frequency = 0;  // STACKS: samples a second; 0: what is usual
  bool user = true;                    // code with CPL > 0
  bool kernel = false;                 // code with CPL 0
  bool ptwrite = false;
  bool power = false;
  bool events = false;
  // Nobody said otherwise: where a processor has no MTC packets, or not that period, it does without them, or
  // has another one.
  bool usual_timing = false;
  bool usual_mtc_period = false;
  bool per_thread = false;           // perf: a buffer for each thread that is there, not for each processor
  std::string event;                 // perf: terms that say otherwise than the options
  bool single_range = false;         // one piece of memory instead of a table of pieces; needs a ring
  bool children = true;              // what the process starts is traced too
  int pid = 0;                       // a process that runs already
  bool all_cpus = false;             // everything that runs on any processor
  std::vector<std::uint32_t> cpus;   // everything that runs on these
  std::uint64_t buffer_bytes = 0;    // of each processor; 0: what is usual
  std::uint64_t sideband_bytes = 0;  // of each processor; 0: what is usual
  std::uint64_t limit_ms = 0;        // then recording ends; 0: no limit

  [[nodiscard]] bool whole_cpus() const noexcept { return all_cpus || !cpus.empty(); }
  [[nodiscard]] bool needs_program() const noexcept { return pid == 0 && !whole_cpus(); }
};

struct RecordOptions {
  std::vector<std::string> argv;  // the program (searched for in PATH) and its arguments
  std::string output;             // path of the bundle
  // If not empty: stream-N.u64 gets the IP of every instruction of stream N, in order; the emulator also
  // writes stream-N.branches: IP and true time (u64 each) of every branch.
  std::string truth_folder;
  bool return_compression = true;
  bool tsc = true;
  bool mtc = true;
  bool cyc = true;
  bool tnt_64 = false;                                     // long TNT packets where they save bytes
  std::uint32_t psb_period = 4096;                         // bytes: a power of two, 2048 at least
  std::uint8_t mtc_period = 8;                             // MTCFreq
  std::uint8_t cyc_threshold = 0;                          // CycThresh
  bool quiet = false;                                      // the program's standard output is discarded
  bool redact = false;                                     // no paths, no command line in the bundle
  std::optional<base::Owner> owner = base::sudo_caller();  // of the complete bundle
  std::uint64_t max_instructions = 0;  // then recording ends and the program runs on; 0: no limit
  std::uint64_t ring_bytes = 0;        // keep only the last so many bytes of trace; 0: all
  std::vector<FilterRequest> filters;
  std::vector<TriggerRequest> triggers;
  std::string qemu;    // emulator: the program
  std::string plugin;  // emulator: the plugin's file
  HardwareOptions hardware;
};

struct RecordResult {
  int exit_status = 0;  // of the program; 128 + signal if it was killed
  std::uint64_t instructions = 0;
  std::uint64_t branches = 0;  // 0: the back end does not count them
  std::uint32_t streams = 0;
  std::uint64_t trace_bytes = 0;  // in the bundle
  std::uint64_t bundle_bytes = 0;
  std::uint64_t dropped_bytes = 0;  // ring mode: trace that was overwritten
  std::uint32_t snapshots = 0;
  bool interrupted = false;     // request_stop() ended it
  bool limited = false;         // max_instructions or a trigger ended it
  std::uint32_t unmatched = 0;  // filters and triggers whose place no process executed; each has a warning
  std::vector<std::string> warnings;
};

// What is wrong with them, if anything.
[[nodiscard]] std::optional<base::Failure> check(const RecordOptions& options);

// What a recording that runs has done so far.
struct RecordProgress {
  std::uint64_t instructions = 0;
  std::uint64_t trace_bytes = 0;
};

}  // namespace ptkit::capture
