// Types of the packets of event tracing.
#pragma once

#include <cstdint>

namespace ptkit::packet {

// Manual, "Control Flow Event (CFE) Packet".
enum class CfeType : std::uint8_t {
  INTR = 1,
  IRET = 2,
  SMI = 3,
  RSM = 4,
  SIPI = 5,
  INIT = 6,
  VMENTRY = 7,
  VMEXIT = 8,
  VMEXIT_INTR = 9,
  SHUTDOWN = 10,
  UINTR = 12,
  UIRET = 13,
  SWINTR = 14,
  SYSCALL = 15,
};

// Manual, "Event Data (EVD) Packet".
enum class EvdType : std::uint8_t { CR2 = 0, VMX_QUALIFICATION = 1, VMX_REASON = 2 };

}  // namespace ptkit::packet
