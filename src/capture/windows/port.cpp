#include "capture/windows/port.h"

#include <array>
#include <cstddef>
#include <string>

#include "capture/common/errors.h"

namespace ptkit::capture {

namespace {

struct Reason {
  std::uint32_t reason;
  const char* words;
};
constexpr std::array<Reason, 19> kReasons{{
    {PTKIT_REASON_NO_PT,
     "the processors have no Processor Trace; record on Intel processors from Broadwell on"},
    {PTKIT_REASON_HYPERVISOR,
     "a hypervisor hides Processor Trace from this Windows; record on the host, or give the machine the "
     "feature"},
    {PTKIT_REASON_VBS,
     "the hypervisor of virtualization-based security (HVCI) hides Processor Trace; switch memory integrity "
     "off "
     "where that is acceptable, and restart"},
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
    {PTKIT_REASON_MEMORY, "the kernel has not enough memory; ask for smaller buffers (--buffer, --ring)"},
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

std::string field_name(std::uint32_t offset) {
  for (const Field& field : kFields) {
    if (field.offset == offset) return field.option;
  }
  if (offset >= offsetof(ptkit_windows_config, module)) return "the driver's name";
  if (offset >= offsetof(ptkit_windows_config, affinity)) return "-C";
  return offset >= offsetof(ptkit_config, ranges) ? "--filter" : "the configuration";
}

}  // namespace

const char* reason_text(std::uint32_t reason) noexcept {
  for (const Reason& one : kReasons) {
    if (one.reason == reason) return one.words;
  }
  return "the driver gives a reason that this program does not know; install the driver that came with it";
}

base::Result<ptkit_windows_query> query_driver(WindowsPort& port) {
  ptkit_windows_query query{};
  if (const std::uint32_t error = exchange(port, PTKIT_WINDOWS_QUERY, query); error != 0)
    return refused_by(port, "say what it can do", error);
  if (query.query.abi == PTKIT_ABI) return query;
  return unsupported("the driver speaks version " + std::to_string(query.query.abi) +
                     " of its interface, and this program version " + std::to_string(PTKIT_ABI) +
                     "; install the driver that came with this program");
}

base::Failure refused_by(WindowsPort& port, const char* what, std::uint32_t error) {
  const std::string begin = std::string("the driver does not ") + what;
  ptkit_windows_refusal why{};
  if (exchange(port, PTKIT_WINDOWS_REFUSAL, why) != 0 || why.reason == PTKIT_REASON_NONE)
    return unsupported(begin + ": error " + std::to_string(error) + " of Windows; `net helpmsg` explains it");
  std::string place;
  if (why.reason == PTKIT_REASON_FIELD || why.reason == PTKIT_REASON_UNSUPPORTED)
    place = field_name(why.field) + ": ";
  const bool of_a_cpu = why.reason == PTKIT_REASON_OWNER || why.reason == PTKIT_REASON_SESSION ||
                        why.reason == PTKIT_REASON_FAULT || why.reason == PTKIT_REASON_ERROR;
  if (of_a_cpu) place = "CPU " + std::to_string(why.cpu) + ": ";
  return unsupported(begin + ": " + place + reason_text(why.reason));
}

}  // namespace ptkit::capture
