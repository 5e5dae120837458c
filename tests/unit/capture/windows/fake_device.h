// A fake of the Windows driver's device, and images without files.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "capture/windows/images.h"
#include "capture/windows/port.h"
#include "unit/support/units/driver_abi.h"

namespace ptkit::capture::test {

inline constexpr std::uint32_t kAccepted = 0;
inline constexpr std::uint32_t kInvalidParameter = 87;  // ERROR_INVALID_PARAMETER

inline ptkit_windows_query everything() {
  ptkit_windows_query all{};
  all.query = capable_query();
  all.query.features &= ~(PTKIT_FEATURE_TASK | PTKIT_FEATURE_CHILDREN);
  return all;
}

inline std::vector<std::uint8_t> bytes_from(std::size_t size, std::uint8_t first) {
  std::vector<std::uint8_t> out(size);
  for (std::size_t i = 0; i < size; ++i) out[i] = static_cast<std::uint8_t>(first + i * 7);
  return out;
}

// Appends the bytes of a record to a ring of sideband.
template <typename T>
void append_record(std::vector<std::uint8_t>& out, T record, std::uint16_t type, std::uint64_t tsc, int pid,
                   int tid = 0, const std::u16string& path = {}) {
  ptkit_record head{};
  head.type = type;
  head.tsc = tsc;
  head.pid = pid;
  head.tid = tid;
  std::memcpy(&record, &head, sizeof head);
  const auto* const text = reinterpret_cast<const std::uint8_t*>(path.data());
  const auto bytes = record_bytes(record, {text, path.size() * sizeof(char16_t)});
  out.insert(out.end(), bytes.begin(), bytes.end());
}

inline void append_image(std::vector<std::uint8_t>& out, std::uint64_t tsc, int pid, std::uint64_t address,
                         std::uint64_t bytes, std::uint32_t flags, const std::u16string& path) {
  ptkit_record_image image{};
  image.address = address;
  image.bytes = bytes;
  image.flags = flags;
  image.path_bytes = static_cast<std::uint32_t>(path.size() * sizeof(char16_t));
  append_record(out, image, PTKIT_RECORD_IMAGE, tsc, pid, 0, path);
}

inline void append_space(std::vector<std::uint8_t>& out, std::uint64_t tsc, int pid, std::uint64_t kernel_cr3,
                         std::uint64_t user_cr3) {
  ptkit_record_space space{};
  space.kernel_cr3 = kernel_cr3;
  space.user_cr3 = user_cr3;
  append_record(out, space, PTKIT_RECORD_SPACE, tsc, pid);
}

class FakeWindows final : public WindowsPort {
 public:
  struct Cpu {
    ptkit_status status{};
    std::vector<std::uint8_t> memory;  // of the buffer
    std::uint64_t dropped = 0;
  };

  ptkit_windows_query query = everything();
  ptkit_windows_config config{};
  std::vector<Cpu> cpus;
  std::vector<std::uint8_t> sideband;  // all that was written
  std::uint64_t sideband_tail = 0;
  std::map<std::uint32_t, ptkit_windows_refusal> refusals;  // by request
  std::vector<std::uint32_t> requests;
  std::function<void()> on_stop;
  bool started = false;
  ptkit_windows_refusal last{};

  // The trace unit writes until the buffer is full up to the reader; a ring overwrites.
  void write(std::size_t number, const std::vector<std::uint8_t>& bytes) {
    Cpu& cpu = cpus[number];
    for (const std::uint8_t byte : bytes) {
      const bool room =
          config.config.mode == PTKIT_MODE_RING || cpu.status.head - cpu.status.tail < cpu.memory.size();
      if (!room && cpu.dropped++ == 0) {
        cpu.status.stopped_at[1] = cpu.status.stopped_at[0];
        cpu.status.stopped_at[0] = cpu.status.head;
        ++cpu.status.stops;
      }
      if (room) cpu.memory[cpu.status.head++ % cpu.memory.size()] = byte;
    }
  }

  std::uint32_t request(std::uint32_t code, base::Bytes in, std::span<std::uint8_t> out,
                        std::size_t& written) override {
    requests.push_back(code);
    written = 0;
    if (code == PTKIT_WINDOWS_REFUSAL) return answer(last, out, written);
    if (const auto found = refusals.find(code); found != refusals.end()) {
      last = found->second;
      return kInvalidParameter;
    }
    return handle(code, in, out, written);
  }

 private:
  template <typename T>
  static std::uint32_t answer(const T& value, std::span<std::uint8_t> out, std::size_t& written) {
    if (out.size() < sizeof value) return kInvalidParameter;
    std::memcpy(out.data(), &value, sizeof value);
    written = sizeof value;
    return kAccepted;
  }
  template <typename T>
  static T read(base::Bytes in) {
    T value{};
    std::memcpy(&value, in.data(), std::min(in.size(), sizeof value));
    return value;
  }

  std::uint32_t handle(std::uint32_t code, base::Bytes in, std::span<std::uint8_t> out,
                       std::size_t& written) {
    switch (code) {
      case PTKIT_WINDOWS_QUERY:
        return answer(query, out, written);
      case PTKIT_WINDOWS_CONFIGURE:
        config = read<ptkit_windows_config>(in);
        for (std::uint32_t i = 0; i < query.query.cpus; ++i)
          cpus.emplace_back().memory.resize(config.config.buffer_bytes);
        if (config.module[0] != 0) {
          config.module_base = 0xfffff80000000000;
          config.module_bytes = 0x5000;
          config.config.ranges[config.config.range_count++] = {
              config.module_base, config.module_base + config.module_bytes - 1, PTKIT_RANGE_FILTER, 0};
        }
        return answer(config, out, written);
      case PTKIT_WINDOWS_BUFFER: {
        auto buffer = read<ptkit_windows_buffer>(in);
        buffer.data_bytes = config.config.buffer_bytes;
        buffer.sideband_bytes = config.config.sideband_bytes;
        return answer(buffer, out, written);
      }
      case PTKIT_WINDOWS_STATUS: {
        const auto asked = read<ptkit_status>(in);
        ptkit_status status = cpus[asked.cpu].status;
        status.cpu = asked.cpu;
        status.sideband_head = sideband.size();
        status.sideband_tail = sideband_tail;
        return answer(status, out, written);
      }
      case PTKIT_WINDOWS_READ:
        return copy(read<ptkit_windows_read>(in), out, written);
      case PTKIT_WINDOWS_CONSUME: {
        const auto consume = read<ptkit_consume>(in);
        Cpu& cpu = cpus[consume.cpu];
        if (consume.tail != 0) cpu.status.tail = consume.tail;
        if (consume.sideband_tail != 0) sideband_tail = consume.sideband_tail;
        cpu.dropped = 0;
        return kAccepted;
      }
      case PTKIT_WINDOWS_START:
        started = true;
        return kAccepted;
      case PTKIT_WINDOWS_SNAPSHOT:
        if (!started) return kInvalidParameter;
        return snapshot(read<ptkit_windows_snapshot>(in).cpu, out, written);
      case PTKIT_WINDOWS_STOP:
        started = false;
        if (on_stop) on_stop();
        return kAccepted;
      default:
        return kAccepted;
    }
  }

  std::uint32_t copy(const ptkit_windows_read& read, std::span<std::uint8_t> out, std::size_t& written) {
    const bool side = read.what == PTKIT_READ_SIDEBAND;
    const std::uint64_t ring = side ? config.config.sideband_bytes : cpus[read.cpu].memory.size();
    if (read.offset >= ring || read.bytes > ring || read.bytes > out.size()) return kInvalidParameter;
    for (std::uint64_t i = 0; i < read.bytes; ++i)
      out[i] = side ? sideband[sideband_tail + i] : cpus[read.cpu].memory[(read.offset + i) % ring];
    written = read.bytes;
    return kAccepted;
  }

  std::uint32_t snapshot(std::uint32_t number, std::span<std::uint8_t> out, std::size_t& written) {
    const Cpu& cpu = cpus[number];
    const std::uint64_t ring = cpu.memory.size();
    ptkit_windows_newest newest{};
    newest.bytes = std::min(cpu.status.head, ring);
    newest.position = cpu.status.head % ring;
    if (cpu.status.head > ring) newest.flags = PTKIT_STATUS_LAPPED;
    std::memcpy(out.data(), &newest, sizeof newest);
    for (std::uint64_t i = 0; i < newest.bytes; ++i)
      out[sizeof newest + i] = cpu.memory[(cpu.status.head - newest.bytes + i) % ring];
    written = sizeof newest + newest.bytes;
    return kAccepted;
  }
};

class FakeImages final : public ImageSource {
 public:
  std::map<std::string, std::vector<std::uint8_t>> files;
  std::map<std::uint64_t, std::vector<std::uint8_t>> memories;  // by address
  int opened = 0;

  trace::TraceBuffer file(const std::string& path) override {
    ++opened;
    const auto found = files.find(path);
    return found == files.end() ? trace::TraceBuffer() : trace::TraceBuffer::from_vector(found->second);
  }
  std::string shown(const std::string& path) override {
    constexpr std::string_view kDos = "\\??\\";
    return path.starts_with(kDos) ? path.substr(kDos.size()) : path;
  }
  std::vector<std::uint8_t> memory(std::int64_t /*pid*/, std::uint64_t address,
                                   std::uint64_t bytes) override {
    const auto found = memories.find(address);
    if (found == memories.end()) return {};
    std::vector<std::uint8_t> out = found->second;
    out.resize(std::min<std::size_t>(out.size(), bytes));
    return out;
  }
};

}  // namespace ptkit::capture::test
