#include "capture/windows/descriptions.h"

#include <array>
#include <cstddef>

#include "capture/windows/requests.h"

namespace ptkit::capture {

namespace {

constexpr std::array<Description, 20> kDriverReasons{{
    {PTKIT_REASON_NO_PT,
     "the processors have no Processor Trace; record on Intel processors from Broadwell on"},
    {PTKIT_REASON_HYPERVISOR,
     "a hypervisor hides Processor Trace from this Windows; record on the host, or give the machine the "
     "feature"},
    {PTKIT_REASON_VBS,
     "the hypervisor of virtualization-based security (HVCI) hides Processor Trace; switch memory integrity "
     "off where that is acceptable, and restart"},
    {PTKIT_REASON_FIELD, "a value is reserved; give another one"},
    {PTKIT_REASON_UNSUPPORTED, "driver or processor do not have this; leave it out"},
    {PTKIT_REASON_OWNER,
     "another tracer uses the trace unit; stop it first (Windows' own ipt service, a profiler)"},
    {PTKIT_REASON_SESSION, "another recorder of ptkit has the processor; end that one first"},
    {PTKIT_REASON_STATE, "the session is not in the state for this; close it and begin anew"},
    {PTKIT_REASON_NO_PROCESS,
     "there is no such process, or it has ended; see the process ids in Task Manager"},
    {PTKIT_REASON_NO_MODULE,
     "no kernel driver of this name is loaded; `driverquery` lists them, and the name has its \".sys\""},
    {PTKIT_REASON_TABLES,
     "the page tables of the process' user code are unknown to the driver on this Windows; record whole "
     "processors (-a), or kernel code"},
    {PTKIT_REASON_MEMORY, "the kernel has not enough memory; use smaller buffers (--buffer, --ring)"},
    {PTKIT_REASON_FAULT, "an access to a register of the trace unit faulted; a hypervisor may own it"},
    {PTKIT_REASON_RIGHTS,
     "the privilege SeSystemProfilePrivilege is missing; run this as an administrator, elevated"},
    {PTKIT_REASON_SIZE,
     "the driver is of another version of ptkit; install the one that came with this program"},
    {PTKIT_REASON_REQUEST,
     "the driver does not know the request; install the one that came with this program"},
    {PTKIT_REASON_INTERRUPT,
     "another driver has the interrupt of performance monitoring; stop profilers, or use --ring"},
    {PTKIT_REASON_WAITS, "another thread waits for this session already"},
    {PTKIT_REASON_ERROR, "the trace unit reported an error, or left its buffer; begin anew"},
    {PTKIT_REASON_DENIED,
     "the trace unit reported an error, and a hypervisor runs below Windows, which may show Processor Trace "
     "and deny its use; switch Hyper-V and memory integrity off where that is acceptable, and restart"},
}};

constexpr std::array<Description, 8> kFeatures{{
    {PTKIT_FEATURE_TOPA, "output to a table of regions (ToPA)"},
    {PTKIT_FEATURE_SINGLE_RANGE, "output to a single range (--single-range)"},
    {PTKIT_FEATURE_PROCESS, "one process, by CR3 (-p, a program)"},
    {PTKIT_FEATURE_PROCESS_BOTH, "user and kernel code of one process (--levels both)"},
    {PTKIT_FEATURE_WAKE_UP, "recordings without end: buffers are emptied while tracing goes on"},
    {PTKIT_FEATURE_SIDEBAND, "processes, threads and images"},
    {PTKIT_FEATURE_BTS, "Branch Trace Store (--bts)"},
    {PTKIT_FEATURE_VMX, "tracing while a hypervisor runs"},
}};

constexpr std::array<Description, 5> kSystem{{
    {PTKIT_SYSTEM_HYPERVISOR, "a hypervisor runs below Windows"},
    {PTKIT_SYSTEM_VBS, "virtualization-based security is on"},
    {PTKIT_SYSTEM_KVA_SHADOW, "user code has page tables of its own (KVA shadow)"},
    {PTKIT_SYSTEM_INTERRUPTS, "the driver has the interrupt of performance monitoring"},
    {PTKIT_SYSTEM_RE_ARMS, "it takes that interrupt again and again"},
}};

// Fields of struct ptkit_windows_config, by the options that set them.
struct Field {
  std::size_t offset;
  const char* option;
};
#define FIELD(name, option) \
  { offsetof(ptkit_config, name), option }
constexpr std::array<Field, 15> kFields{{
    FIELD(target, "what is traced (-p, -a, -C)"),
    FIELD(cpu, "-C"),
    FIELD(task, "what is traced (-p, -a, -C)"),
    FIELD(process, "the process"),
    FIELD(output, "--single-range, --bts"),
    FIELD(mode, "--ring"),
    FIELD(buffer_bytes, "--buffer, --ring"),
    FIELD(sideband_bytes, "the ring for sideband"),
    FIELD(wake_up_bytes, "--buffer"),
    FIELD(flags, "--levels, --timing, --packets"),
    FIELD(mtc_freq, "--mtc-period"),
    FIELD(cyc_thresh, "--cyc-threshold"),
    FIELD(psb_freq, "--psb-period"),
    FIELD(range_count, "--filter"),
    {offsetof(ptkit_windows_config, module), "the driver's name"},
}};
#undef FIELD

}  // namespace

std::span<const Description> feature_descriptions() noexcept { return kFeatures; }

std::span<const Description> system_descriptions() noexcept { return kSystem; }

const char* reason_text(std::uint32_t reason) noexcept {
  for (const Description& one : kDriverReasons) {
    if (one.code == reason) return one.text;
  }
  return "the driver gives a reason that this program does not know; install the driver that came with it";
}

std::string recording_text(const ptkit_windows_query& query) {
  if (query.reason != PTKIT_REASON_NONE)
    return std::string("recording:  impossible: ") + reason_text(query.reason);
  if ((query.system & PTKIT_SYSTEM_HYPERVISOR) == 0) return "recording:  possible";
  return "recording:  not certain: a hypervisor runs below Windows; it shows Processor Trace, and may deny "
         "its use (try it)";
}

const char* field_text(std::uint32_t offset) noexcept {
  for (const Field& field : kFields) {
    if (field.offset == offset) return field.option;
  }
  if (offset >= offsetof(ptkit_windows_config, module)) return "the driver's name";
  if (offset >= offsetof(ptkit_windows_config, affinity)) return "-C";
  return offset >= offsetof(ptkit_config, ranges) ? "--filter" : "the configuration";
}

}  // namespace ptkit::capture
