// One decode of so many bytes: a part of a trace, or the trace again and again. Says how long it took, and
// how much memory the process had at most, beyond the trace.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "common/clock.h"
#include "common/table.h"
#include "formats/registry.h"
#include "packet/decoder.h"

namespace ptkit::bench {
namespace {

constexpr std::size_t kPart = 1U << 20U;

// Whole recordings, then a part that ends before a PSB.
std::vector<std::uint8_t> repeated(base::Bytes stream, std::size_t size) {
  std::vector<std::uint8_t> bytes;
  bytes.reserve(size);
  while (bytes.size() + stream.size() <= size) bytes.insert(bytes.end(), stream.begin(), stream.end());
  packet::PacketDecoder decoder(stream);
  const std::size_t left = size - bytes.size();
  if (left != 0 && decoder.sync_forward(left) == base::Status::OK) {
    bytes.insert(bytes.end(), stream.begin(),
                 stream.begin() + static_cast<std::ptrdiff_t>(decoder.position()));
  }
  return bytes;
}

// A line of /proc/self/status, in bytes.
std::uint64_t memory(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name + ":"))
      return std::strtoull(line.c_str() + name.size() + 1, nullptr, 10) << 10U;
  }
  return 0;
}

// What is in memory now, which is the peak from here on.
std::uint64_t begin_peak() {
  std::ofstream("/proc/self/clear_refs") << "5";
  return memory("VmRSS");
}

int grow(bool edges, trace::TraceBundle bundle, std::size_t size) {
  auto bytes = repeated(bundle.streams.front().data.bytes(), size);
  if (bytes.empty()) {
    std::fprintf(stderr, "the trace has no PSB at %zu bytes or after\n", size);
    return 2;
  }
  const std::size_t total = bytes.size();
  bundle.streams.resize(1);
  bundle.streams.front().switches.clear();
  bundle.streams.front().data = trace::TraceBuffer::from_vector(std::move(bytes));
  Session session(bundle);
  const std::uint64_t before = begin_peak();
  const double wall = wall_seconds();
  const double cpu = cpu_seconds();
  const Outcome outcome = edges ? session.edges({0}) : session.branches(kPart);
  const double cpu_end = cpu_seconds();
  std::printf(
      "{\"bytes\": %zu, \"rows\": %llu, \"errors\": %llu, \"wall\": %.6f, \"cpu\": %.6f, \"peak\": %llu}\n",
      total, static_cast<unsigned long long>(outcome.rows), static_cast<unsigned long long>(outcome.errors),
      wall_seconds() - wall, cpu_end - cpu, static_cast<unsigned long long>(memory("VmHWM") - before));
  return 0;
}

}  // namespace
}  // namespace ptkit::bench

int main(int argc, char** argv) {
  const bool edges = argc == 4 && std::strcmp(argv[1], "edges") == 0;
  if (!edges && (argc != 4 || std::strcmp(argv[1], "branches") != 0)) {
    std::fprintf(stderr, "usage: %s edges|branches TRACE BYTES\n", argv[0]);
    return 2;
  }
  auto opened = ptkit::formats::open(argv[2], {});
  if (!opened.ok()) {
    std::fprintf(stderr, "%s: %s\n", argv[2], opened.failure().detail.c_str());
    return 2;
  }
  return ptkit::bench::grow(edges, std::move(opened.value()), std::strtoull(argv[3], nullptr, 10));
}
