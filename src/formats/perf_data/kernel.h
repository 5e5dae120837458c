// The kernel's code and symbols: those that perf record --kcore saved (kcore_dir/kcore and kallsyms), and
// changes during the recording: KSYMBOL and TEXT_POKE records, and the feature BPF_PROG_INFO
// (tools/perf/util/machine.c, bpf-utils.c). For .cpp files of this folder only.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "formats/perf_event/record.h"
#include "trace/bundle.h"

namespace ptkit::formats::perf {

// Returns false if the folder has no kcore.
[[nodiscard]] bool add_kernel(trace::TraceBundle& bundle, const std::string& folder);

// Returns the kernel's code in the bundle, by address.
[[nodiscard]] std::map<std::uint64_t, trace::CodeRegion> kernel_regions(const trace::TraceBundle& bundle);

class KernelChanges {
 public:
  // Adds a KSYMBOL or TEXT_POKE record. `bytes`: the body, with shared ownership. False: the record is too
  // short for its type.
  [[nodiscard]] bool add(const Record& record, const trace::TraceBuffer& bytes, const Trailer& trailer);
  // Appends the changed code to the bundle, after the kernel's own code. `programs`: the feature
  // BPF_PROG_INFO.
  void add_to(trace::TraceBundle& bundle, base::Bytes programs);
  [[nodiscard]] bool empty() const noexcept { return events_.empty(); }

 private:
  struct Event {
    std::uint64_t tsc = 0;  // nanoseconds, until add_to()
    std::uint64_t address = 0;
    std::uint64_t size = 0;     // KSYMBOL
    bool is_symbol = false;     // KSYMBOL, else TEXT_POKE
    bool unregistered = false;  // KSYMBOL with PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER
    std::string name;           // KSYMBOL
    trace::TraceBuffer before;  // TEXT_POKE: old bytes
    trace::TraceBuffer after;   // TEXT_POKE: new bytes
  };
  // A function that the kernel registered: a BPF program or a trampoline.
  struct KernelFunction {
    std::uint64_t size = 0;
    std::vector<std::size_t> regions;  // indexes in the bundle's code
  };

  void add_symbol(trace::TraceBundle& bundle, const Event& event);
  void add_poke(trace::TraceBundle& bundle, const Event& event);
  void end(trace::TraceBundle& bundle, std::uint64_t address, std::uint64_t tsc);
  // Returns a region without bytes at an address, with the file and the file offset that its symbols have.
  [[nodiscard]] trace::CodeRegion region_at(std::uint64_t address) const;

  std::vector<Event> events_;
  std::map<std::uint64_t, trace::TraceBuffer> programs_;  // by address
  std::map<std::uint64_t, trace::CodeRegion> kernel_;     // by address
  std::map<std::uint64_t, KernelFunction> functions_;     // by address
  std::set<std::uint64_t> patched_;                       // addresses of TEXT_POKE records
};

// Reads the machine code of BPF programs from the feature BPF_PROG_INFO, by address.
[[nodiscard]] std::map<std::uint64_t, trace::TraceBuffer> bpf_programs(base::Bytes feature);

}  // namespace ptkit::formats::perf
