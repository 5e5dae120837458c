// Errors of perf_event_open(), mmap() and ioctl() as sentences: the cause and the remedy.
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "capture/linux/perf/branches.h"

namespace ptkit::capture {

namespace {

// The highest kernel.perf_event_paranoid that permits the event without capabilities.
int needed_level(const PerfScope& scope) {
  if (scope.whole_cpus) return 0;
  // Branch records of intel_bts have kernel addresses, even without kernel code.
  return scope.kernel || scope.recorded == Recorded::BTS ? 1 : 2;
}

PerfError not_permitted(const PerfPort& port, const PerfScope& scope, int error) {
  const std::string level = port.read("/proc/sys/kernel/perf_event_paranoid").value_or("unknown");
  const int needed = needed_level(scope);
  const char* what = scope.whole_cpus ? "whole processors" : scope.kernel ? "the kernel's code" : "programs";
  if (std::atoi(level.c_str()) > needed) {
    return {std::string("not permitted: tracing ") + what + " needs kernel.perf_event_paranoid at most " +
                std::to_string(needed) + ", and it is " + level,
            "run as root or with the capability CAP_PERFMON, or set it (sysctl kernel.perf_event_paranoid=" +
                std::to_string(needed) + ")"};
  }
  if (scope.pid != 0 && error == EACCES) {
    return {
        "pid: process " + std::to_string(scope.pid) + " belongs to another user, or does not allow tracing",
        "run as root, or with the capabilities CAP_PERFMON and CAP_SYS_PTRACE"};
  }
  return {
      std::string("not permitted: tracing ") + what + " (perf_event_open: " + std::strerror(error) + ")",
      "run as root; in a container allow perf_event_open in its seccomp profile, and give it CAP_PERFMON"};
}

std::string free_text(const PerfPort& port) {
  const std::uint64_t bytes = free_memory(port);
  return bytes == 0 ? "" : " (" + std::to_string(bytes / 1024 / 1024) + " MiB are free)";
}

// A buffer is two mappings: records and AUX area.
std::string map_limit(const PerfPort& port, std::size_t count) {
  const std::string limit = port.read("/proc/sys/vm/max_map_count").value_or("");
  const std::uint64_t most = std::strtoull(limit.c_str(), nullptr, 10);
  return most != 0 && 2 * count >= most ? "; a process may map " + limit + " parts (vm.max_map_count)" : "";
}

}  // namespace

PerfError open_error(const PerfPort& port, const PerfScope& scope, int error) {
  if (auto found = branch_error(port, scope, error)) return *found;
  switch (error) {
    case EACCES:
    case EPERM:
      return not_permitted(port, scope, error);
    case EBUSY:
      return {
          "another tracer is active (perf or another ptkit with intel_pt, or LBR or BTS events, which "
          "exclude intel_pt)",
          "stop that tracer first: a processor has only one trace unit"};
    case ESRCH:
      return {"pid: there is no process " + std::to_string(scope.pid) + " any more", "give one that runs"};
    case ENODEV:
      return {"processor " + std::to_string(scope.cpu) + " is offline, or cannot trace now",
              "leave it out (cpus), or bring it online"};
    case ENOENT:
    case EOPNOTSUPP:
      return {"the kernel's intel_pt cannot do this (" + std::string(std::strerror(error)) + ")",
              "a hypervisor may hide the trace unit; use backend \"driver\" or \"emulator\""};
    case EINVAL: {
      char config[32];
      std::snprintf(config, sizeof config, "0x%llx", static_cast<unsigned long long>(scope.config));
      return {
          std::string("timing, packets, event: the kernel refuses these settings (config ") + config + ")",
          "leave terms out that the processor lacks (" + kPerfSources + "intel_pt/caps)"};
    }
    case EMFILE:
    case ENFILE:
      return {"perf needs a file for each thread on each processor, and there are too many",
              "raise the hard limit (ulimit -n as root), or use cpus or per_thread"};
    case ENOSYS:
      return {"this kernel has no perf events",
              "boot one with CONFIG_PERF_EVENTS, or use backend \"driver\""};
    case ENOMEM:
      return {"the kernel has no memory for the events",
              "record fewer threads or processors (cpus), or give each thread its own buffer (per_thread)"};
    default:
      return {std::string("the kernel does not open the event: ") + std::strerror(error), "see its log"};
  }
}

PerfError invalid_error(PerfPort& port, perf_event_attr attr, int tid, int cpu, const PerfScope& scope) {
  const auto helps = [&] {
    const int event = port.open(attr, tid, cpu);
    if (event >= 0) port.close(event);
    return event != -EINVAL;
  };
  const bool threads = attr.inherit_thread != 0;
  attr.inherit_thread = 0;
  if (threads && helps()) {
    return {"children: this kernel cannot follow threads without children (Linux 5.13 can)",
            "record children, too, or each thread that is there by itself (per_thread)"};
  }
  attr.config = 0;
  if (scope.recorded != Recorded::PACKETS || helps()) return open_error(port, scope, EINVAL);
  return {"the kernel refuses the event, whatever its settings are",
          "it may be older than this ptkit needs; see its log"};
}

PerfError map_error(const PerfPort& port, std::uint64_t bytes, std::size_t count, int error) {
  const std::string size = std::to_string(bytes / 1024) + " KiB for each of " + std::to_string(count) +
                           (count == 1 ? " buffer" : " buffers");
  switch (error) {
    case EPERM: {
      const std::string limit = port.read("/proc/sys/kernel/perf_event_mlock_kb").value_or("unknown");
      return {"buffer: " + size + " are more than you may lock (kernel.perf_event_mlock_kb is " + limit + ")",
              "use smaller sizes (buffer, ring), raise that or `ulimit -l`, or run with the capability "
              "CAP_IPC_LOCK"};
    }
    case ENOMEM:
      return {
          "buffer: there is not enough memory for " + size + free_text(port),
          "use smaller sizes (buffer, ring), or record fewer threads or processors (cpus; per_thread has a "
          "buffer for each thread)" +
              map_limit(port, count)};
    case EOPNOTSUPP:
      return {
          "buffer: the kernel gives intel_pt no buffer of that kind",
          "use smaller sizes (buffer, ring): a processor without multi-entry ToPA needs a contiguous buffer"};
    default:
      return {"buffer: the kernel does not map " + size + ": " + std::strerror(error),
              "use smaller sizes (buffer, ring)"};
  }
}

PerfError filter_error(const std::string& text, const PerfScope& scope, int error) {
  if (error == EOPNOTSUPP && scope.whole_cpus && text.find('@') != std::string::npos) {
    return {"filters: perf cannot filter by files on whole processors",
            "record a program or a process, filter by functions of the kernel, or use backend \"driver\""};
  }
  if (error == EINVAL && !scope.kernel && text.find('@') == std::string::npos) {
    return {"filters: these addresses are the kernel's, and its code is not traced (" + text + ")",
            "trace it (levels), or name a file"};
  }
  switch (error) {
    case EOPNOTSUPP:
      return {"filters: this processor or kernel cannot do them (" + text + ")",
              "use fewer, or filter and tracestop of ranges only"};
    case ENOENT:
    case EACCES:
      return {"filters: the kernel cannot look into the file (" + text + ": " + std::strerror(error) + ")",
              "name a file that is there, and that you may read"};
    default:
      return {"filters: the kernel refuses them (" + text + ": " + std::strerror(error) + ")",
              "name ranges that lie in one mapped file or in the kernel"};
  }
}

}  // namespace ptkit::capture
