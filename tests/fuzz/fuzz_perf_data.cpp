// Any perf.data, read to its last byte, and the parsers of its members and of files beside it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "formats/perf_data/filter.h"
#include "formats/perf_data/kernel.h"
#include "formats/perf_data/overlap.h"
#include "formats/perf_event/jit.h"
#include "formats/perf_event/sample.h"
#include "formats/registry.h"
#include "memory_file.h"

namespace {

using namespace ptkit;  // NOLINT(google-build-using-namespace)

// What a bundle says of its streams has to be within them.
void check(const trace::TraceBundle& bundle) {
  for (const trace::Stream& stream : bundle.streams) {
    const base::Bytes bytes = stream.data.bytes();
    unsigned sum = 0;
    for (const std::uint8_t byte : bytes) sum += byte;
    static_cast<void>(*const_cast<volatile unsigned*>(&sum));
    for (const trace::KnownLoss& loss : stream.losses) {
      if (loss.offset > bytes.size()) std::abort();
    }
    for (const trace::Switch& one : stream.switches) {
      if (one.space >= bundle.spaces.size() || one.offset > bytes.size()) std::abort();
    }
  }
  for (const trace::CodeRegion& region : bundle.code) {
    if (region.file >= static_cast<std::int32_t>(bundle.files.size())) std::abort();
    if (region.bytes.size() > region.size) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const test::MemoryFile file;
  file.fill(data, size);
  const auto bundle = formats::open(file.path(), {.format = "perf.data"});
  if (bundle.ok()) check(bundle.value());
  const base::Bytes bytes(data, size);
  static_cast<void>(formats::perf::bpf_programs(bytes));
  static_cast<void>(formats::perf::find_sched_switch(bytes));
  static_cast<void>(formats::perf::find_overlap(bytes.first(size / 2), bytes.subspan(size / 2)));
  static_cast<void>(formats::perf::read_jit_map({reinterpret_cast<const char*>(data), size}));
  const auto filter = formats::perf::parse_filter({reinterpret_cast<const char*>(data), size});
  if (filter.left.size() > size) std::abort();
  trace::TraceBundle made;
  std::vector<formats::perf::Event> loads;
  const auto dump = trace::TraceBuffer::from_vector({data, data + size});
  static_cast<void>(formats::perf::read_jit_dump(made, dump, {}, loads));
  if (size >= 64) {
    if (const auto attr = formats::perf::parse_attr(bytes.first(64)))
      static_cast<void>(formats::perf::parse_sample(*attr, bytes.subspan(64)));
  }
  return 0;
}
