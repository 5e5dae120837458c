// Events of ETW as 64-bit Windows lays them out, and a fake session of them.
#pragma once

#include <utility>
#include <vector>

#include "base/fields.h"
#include "capture/windows/event_session.h"

namespace ptkit::capture::test {

inline constexpr Guid kThreadGuid{0xd1, 0xa8, 0x6f, 0x3d, 0x05, 0xfe, 0xd0, 0x11,
                                  0x9d, 0xda, 0x00, 0xc0, 0x4f, 0xd7, 0xba, 0x7c};
inline constexpr Guid kImageGuid{0x1d, 0x5d, 0xb1, 0x2c, 0xc1, 0x5f, 0xd2, 0x11,
                                 0xab, 0xe1, 0x00, 0xa0, 0xc9, 0x11, 0xf5, 0x18};
inline constexpr Guid kLossGuid{0xe0, 0x9a, 0x39, 0x6a, 0xc6, 0x4b, 0xe9, 0x4d,
                                0x87, 0x0b, 0x36, 0x57, 0xf8, 0x94, 0x7e, 0x7e};

inline RawEvent raw_event(const Guid& provider, std::uint8_t opcode, std::uint32_t cpu, std::uint64_t tsc,
                          base::Bytes payload) {
  RawEvent raw;
  raw.provider = provider;
  raw.opcode = opcode;
  raw.version = 3;
  raw.cpu = cpu;
  raw.tsc = tsc;
  raw.payload = payload;
  return raw;
}

inline std::vector<std::uint8_t> switch_payload(std::uint32_t from, std::uint32_t to) {
  std::vector<std::uint8_t> out;
  base::append_le(out, to);
  base::append_le(out, from);
  for (std::uint8_t one = 1; one <= 8; ++one) out.push_back(one);  // priorities and states
  base::append_le(out, std::uint32_t{17});                         // NewThreadWaitTime
  base::append_le(out, std::uint32_t{0});
  return out;
}

inline std::vector<std::uint8_t> thread_payload(std::uint32_t pid, std::uint32_t tid) {
  std::vector<std::uint8_t> out;
  base::append_le(out, pid);
  base::append_le(out, tid);
  out.resize(out.size() + 56);  // stacks, start addresses, priorities
  return out;
}

inline std::vector<std::uint8_t> unload_payload(std::uint64_t address, std::uint64_t bytes,
                                                std::uint32_t pid) {
  std::vector<std::uint8_t> out;
  base::append_le(out, address);
  base::append_le(out, bytes);
  base::append_le(out, pid);
  for (const std::uint32_t one : {0xabcdU, 0x5f5e100U, 0U}) base::append_le(out, one);
  base::append_le(out, std::uint64_t{0x180000000});  // DefaultBase
  out.resize(out.size() + 16);
  for (const char letter : {'a', '\0', '\0', '\0'})  // FileName
    out.push_back(static_cast<std::uint8_t>(letter));
  return out;
}

inline KernelEvent switch_event(std::uint32_t cpu, std::uint64_t tsc, std::int64_t from, std::int64_t to) {
  KernelEvent event;
  event.kind = KernelEvent::Kind::SWITCH;
  event.cpu = cpu;
  event.tsc = tsc;
  event.old_tid = from;
  event.tid = to;
  return event;
}

inline KernelEvent thread_event(std::int64_t pid, std::int64_t tid, std::uint64_t tsc) {
  KernelEvent event;
  event.kind = KernelEvent::Kind::THREAD;
  event.tsc = tsc;
  event.pid = pid;
  event.tid = tid;
  return event;
}

inline KernelEvent unload_event(std::int64_t pid, std::uint64_t address, std::uint64_t bytes,
                                std::uint64_t tsc) {
  KernelEvent event;
  event.kind = KernelEvent::Kind::UNLOAD;
  event.tsc = tsc;
  event.pid = pid;
  event.address = address;
  event.bytes = bytes;
  return event;
}

class FakeEvents final : public EventSession {
 public:
  std::optional<base::Failure> refusal;
  std::vector<KernelEvent> events;   // since the last take()
  std::vector<KernelEvent> at_stop;  // that are delivered only then
  Losses lost;
  bool started = false;

  std::optional<base::Failure> start() override {
    started = !refusal;
    return refusal;
  }
  std::vector<KernelEvent> take() override { return std::exchange(events, {}); }
  void stop() override {
    started = false;
    events.insert(events.end(), at_stop.begin(), at_stop.end());
  }
  [[nodiscard]] Losses losses() const override { return lost; }
};

}  // namespace ptkit::capture::test
