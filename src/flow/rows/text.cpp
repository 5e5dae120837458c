#include "flow/rows/text.h"

#include <array>
#include <cinttypes>
#include <cstdio>
#include <string_view>

#include "base/ascii.h"

namespace ptkit::flow {
namespace {

template <typename... Values>
std::string format(const char* form, Values... values) {
  char text[96];
  const int length = std::snprintf(text, sizeof text, form, values...);
  return {text, static_cast<std::size_t>(length)};
}

std::string hex16(std::uint64_t value) { return format("%016" PRIx64, value); }

std::string c_state(std::uint64_t state) { return format("c%u", static_cast<unsigned>(state + 1) & 0xfU); }

// "pebs end" of PEBS_END.
std::string name_text(EventKind kind) {
  static constexpr std::array kNames = {
#define PT_EVENT_KIND(name, value, text) std::string_view(#name),
#include "flow/rows/kinds.def"
  };
  const auto number = static_cast<std::size_t>(kind);
  std::string text(number < kNames.size() ? kNames[number] : "");
  for (char& letter : text) letter = letter == '_' ? ' ' : base::ascii_lower(letter);
  return text;
}

std::string vmexit_text(const Event& row) {
  std::string text = "vmexit";
  if ((row.flags & EV_PAYLOAD_KNOWN) != 0) text += ", intr: " + std::to_string(row.payload);
  if ((row.flags & EV_CR2_KNOWN) != 0) text += ", vmxr: " + hex16(row.payload2);
  if ((row.flags & EV_QUALIFICATION_KNOWN) != 0) text += ", vmxq: " + hex16(row.payload3);
  return text;
}

std::string trig_text(const Event& row) {
  std::string text = format("trig %02" PRIx64, row.payload);
  if ((row.flags & EV_MULT) != 0) text += ", mult";
  return text;
}

std::string pwrx_text(const Event& row) {
  std::string text = "pwrx ";
  if ((row.payload2 & 1U) != 0) text += "int: ";
  if ((row.payload2 & 4U) != 0) text += "st: ";
  if ((row.payload2 & 8U) != 0) text += "hw: ";
  return text + c_state(row.payload >> 4U) + " (" + c_state(row.payload & 0xfU) + ")";
}

}  // namespace

std::string event_text(const Event& row) {
  const bool resumed = (row.flags & EV_RESUMED) != 0;
  const std::string non_root = (row.flags & EV_NON_ROOT) != 0 ? ", nr" : "";
  switch (row.kind) {
    case EventKind::ENABLED:
      return resumed ? "resumed" : "enabled";
    case EventKind::ASYNC_DISABLED:
      return "disabled";
    case EventKind::ASYNC_BRANCH:
      return "interrupt";
    case EventKind::PAGING:
    case EventKind::ASYNC_PAGING:
      return "paging, cr3: " + hex16(row.payload) + non_root;
    case EventKind::VMCS:
    case EventKind::ASYNC_VMCS:
      return "vmcs, base: " + hex16(row.payload);
    case EventKind::EXEC_MODE:
      return "exec mode: " + std::to_string(row.payload) + "-bit";
    case EventKind::TSX_BEGIN:
      return "begin transaction";
    case EventKind::TSX_COMMIT:
      return "committed";
    case EventKind::TSX_ABORT:
      return "aborted";
    case EventKind::STOP:
      return "stopped";
    case EventKind::MWAIT:
      return format("mwait %" PRIx64 " %" PRIx64, row.payload, row.payload2);
    case EventKind::PWRE:
      return "pwre " + c_state(row.payload >> 4U) +
             format(".%u", static_cast<unsigned>((row.payload & 0xfU) + 1) & 0xfU) +
             ((row.flags & EV_HW) != 0 ? " hw" : "");
    case EventKind::PWRX:
      return pwrx_text(row);
    case EventKind::PTWRITE:
      return format("ptwrite: %" PRIx64, row.payload);
    case EventKind::CBR:
      return format("cbr: %" PRIx64, row.payload);
    case EventKind::MNT:
      return format("mnt: %" PRIx64, row.payload);
    case EventKind::IFLAG:
      return row.payload != 0 ? "interrupts enabled" : "interrupts disabled";
    case EventKind::INTERRUPT:
      return "interrupt " + std::to_string(row.payload) +
             ((row.flags & EV_CR2_KNOWN) != 0 ? ", cr2: " + hex16(row.payload2) : "");
    case EventKind::SIPI:
      return format("sipi: %" PRIx64, row.payload);
    case EventKind::VMEXIT:
      return vmexit_text(row);
    case EventKind::UINTR:
      return "uintr " + std::to_string(row.payload);
    case EventKind::TRIG:
      return trig_text(row);
    case EventKind::SWINTR:
      return "swintr " + std::to_string(row.payload);
    case EventKind::PEBS_BEGIN:
      return format("pebs begin, type: %" PRIx64, row.payload);
    case EventKind::PEBS_ITEM:
      return format("pebs item %" PRIx64 ": %" PRIx64, row.payload, row.payload2);
    case EventKind::EVENT_DATA:
      return format("event data %" PRIx64 ": %" PRIx64, row.payload, row.payload2);
    default:
      return name_text(row.kind);
  }
}

}  // namespace ptkit::flow
