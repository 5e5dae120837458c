#include "capture/windows/kernel_events.h"

#include <cstddef>

namespace ptkit::capture {

namespace {

constexpr Guid guid(std::uint32_t first, std::uint16_t second, std::uint16_t third,
                    const std::array<std::uint8_t, 8>& last) noexcept {
  Guid out{};
  for (std::size_t i = 0; i < 4; ++i) out[i] = static_cast<std::uint8_t>(first >> (8 * i));
  for (std::size_t i = 0; i < 2; ++i) {
    out[4 + i] = static_cast<std::uint8_t>(second >> (8 * i));
    out[6 + i] = static_cast<std::uint8_t>(third >> (8 * i));
  }
  for (std::size_t i = 0; i < last.size(); ++i) out[8 + i] = last[i];
  return out;
}

constexpr Guid kThread = guid(0x3d6fa8d1, 0xfe05, 0x11d0, {0x9d, 0xda, 0x00, 0xc0, 0x4f, 0xd7, 0xba, 0x7c});
constexpr Guid kImage = guid(0x2cb15d1d, 0x5fc1, 0x11d2, {0xab, 0xe1, 0x00, 0xa0, 0xc9, 0x11, 0xf5, 0x18});
constexpr Guid kLoss = guid(0x6a399ae0, 0x4bc6, 0x4de9, {0x87, 0x0b, 0x36, 0x57, 0xf8, 0x94, 0x7e, 0x7e});

constexpr std::uint8_t kLeastVersion = 2;  // the layouts below are those of Windows Vista and later

constexpr std::uint8_t kThreadStart = 1;
constexpr std::uint8_t kThreadRundown = 3;  // DCStart: a thread that was there before the session
constexpr std::uint8_t kSwitch = 36;
constexpr std::uint8_t kImageUnload = 2;
constexpr std::uint8_t kFirstLoss = 32;  // RT_LostEvent, RT_LostBuffer, RT_LostFile
constexpr std::uint8_t kLastLoss = 34;

// Bytes of the fields before a text of variable length, or of all.
constexpr std::size_t kThreadBytes = 8;
constexpr std::size_t kSwitchBytes = 24;
constexpr std::size_t kImageBytes = 56;

bool is_known(const RawEvent& raw) noexcept {
  if (raw.provider == kThread)
    return raw.opcode == kThreadStart || raw.opcode == kThreadRundown || raw.opcode == kSwitch;
  if (raw.provider == kImage) return raw.opcode == kImageUnload;
  return raw.provider == kLoss && raw.opcode >= kFirstLoss && raw.opcode <= kLastLoss;
}

// NewThreadId u32, OldThreadId u32, priorities, states and waits.
bool read_switch(base::Bytes payload, KernelEvent& out) noexcept {
  if (payload.size() < kSwitchBytes) return false;
  out.kind = KernelEvent::Kind::SWITCH;
  out.tid = static_cast<std::int64_t>(base::load_le<4>(payload.data()));
  out.old_tid = static_cast<std::int64_t>(base::load_le<4>(payload.data() + 4));
  return true;
}

// ProcessId u32, TThreadId u32, and more.
bool read_thread(base::Bytes payload, KernelEvent& out) noexcept {
  if (payload.size() < kThreadBytes) return false;
  out.kind = KernelEvent::Kind::THREAD;
  out.pid = static_cast<std::int64_t>(base::load_le<4>(payload.data()));
  out.tid = static_cast<std::int64_t>(base::load_le<4>(payload.data() + 4));
  return true;
}

// ImageBase pointer, ImageSize pointer, ProcessId u32, check sums, DefaultBase pointer, reserved, FileName.
bool read_unload(const RawEvent& raw, KernelEvent& out) noexcept {
  if (!raw.has_64_bit_pointers || raw.payload.size() < kImageBytes) return false;
  out.kind = KernelEvent::Kind::UNLOAD;
  out.address = base::load_le<8>(raw.payload.data());
  out.bytes = base::load_le<8>(raw.payload.data() + 8);
  out.pid = static_cast<std::int64_t>(base::load_le<4>(raw.payload.data() + 16));
  return out.bytes != 0 && out.address + out.bytes > out.address;
}

bool read_payload(const RawEvent& raw, KernelEvent& out) noexcept {
  if (raw.provider == kLoss) {
    out.kind = KernelEvent::Kind::LOSS;
    return true;
  }
  if (raw.version < kLeastVersion) return false;
  if (raw.provider == kImage) return read_unload(raw, out);
  return raw.opcode == kSwitch ? read_switch(raw.payload, out) : read_thread(raw.payload, out);
}

}  // namespace

ParsedEvent parse_event(const RawEvent& raw, KernelEvent& out) noexcept {
  if (!is_known(raw)) return ParsedEvent::OTHER;
  out = {};
  out.cpu = raw.cpu;
  out.tsc = raw.tsc;
  return read_payload(raw, out) ? ParsedEvent::KNOWN : ParsedEvent::MALFORMED;
}

}  // namespace ptkit::capture
