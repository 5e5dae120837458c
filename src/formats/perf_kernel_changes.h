// Kernel code that came, went and changed while perf recorded: KSYMBOL and TEXT_POKE records, and the table
// of BPF programs (tools/perf/util/machine.c, bpf-utils.c). For .cpp files of this folder only.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "formats/perf_record.h"
#include "trace/bundle.h"

namespace ptkit::formats::perf {

class KernelChanges {
 public:
  // `stays`: the body's bytes, for as long as anybody has them. False: the record is too short for what it
  // is.
  [[nodiscard]] bool take(const Record& record, const trace::TraceBuffer& stays, const Trailer& who);
  // Code of all that is known behind the kernel's own. `programs`: perf's table of BPF programs.
  void add_to(trace::TraceBundle& bundle, base::Bytes programs);
  [[nodiscard]] bool empty() const noexcept { return events_.empty(); }

 private:
  struct Event {
    std::uint64_t tsc = 0;  // nanoseconds, until add_to()
    std::uint64_t address = 0;
    std::uint64_t size = 0;  // of a symbol
    bool is_symbol = false;
    bool goes = false;          // the symbol
    std::string name;           // of the symbol
    trace::TraceBuffer before;  // of other events: what was there, and what is
    trace::TraceBuffer after;
  };
  struct Made {  // a function that the kernel made
    std::uint64_t size = 0;
    std::vector<std::size_t> regions;  // of the bundle: its code, as long as it is there
  };

  void add_symbol(trace::TraceBundle& bundle, const Event& event);
  void add_poke(trace::TraceBundle& bundle, const Event& event);
  void end(trace::TraceBundle& bundle, std::uint64_t address, std::uint64_t tsc);
  // Code at an address, without its bytes: of the file, and the place in it, that names there come from.
  [[nodiscard]] trace::CodeRegion region_at(std::uint64_t address) const;

  std::vector<Event> events_;
  std::map<std::uint64_t, trace::TraceBuffer> programs_;  // by address
  std::map<std::uint64_t, trace::CodeRegion> kernel_;     // by address
  std::map<std::uint64_t, Made> made_;                    // by address
  std::set<std::uint64_t> poked_;                         // places that were changed
};

// Machine code of BPF programs, by address, from perf's table of them.
[[nodiscard]] std::map<std::uint64_t, trace::TraceBuffer> bpf_programs(base::Bytes feature);

}  // namespace ptkit::formats::perf
