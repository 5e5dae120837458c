// Any bytes as an index, and indexes that say anything of a trace, with check sums that are right: refused,
// or used without a crash.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "flow/index/builder.h"
#include "unit/flow/tables.h"
#include "unit/support/traces/roundtrip.h"

namespace {

using namespace ptkit;

constexpr std::size_t kSegment = 512;

class Input {
 public:
  explicit Input(base::Bytes bytes) : bytes_(bytes) {}
  [[nodiscard]] bool empty() const { return at_ >= bytes_.size(); }
  std::uint8_t byte() { return empty() ? std::uint8_t{0} : bytes_[at_++]; }
  std::size_t below(std::size_t limit) {
    const unsigned value = byte() | unsigned{byte()} << 8U;
    return limit == 0 ? 0 : value % limit;
  }
  std::uint64_t word() {
    std::uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value = value << 8U | byte();
    return value;
  }

 private:
  base::Bytes bytes_;
  std::size_t at_ = 0;
};

// A trace and its index.
struct Scene {
  Scene() : bundle(make_bundle()), image(bundle), pool(image) {
    const trace::Stream& stream = bundle->streams[0];
    const auto make = flow::roundtrip::maker_of(stream, *bundle, image, pool);
    const std::atomic<bool> cancelled{false};
    flow::index::StreamBuilder builder({*bundle, stream, {}, make, kSegment, 1, cancelled});
    auto built = builder.build();
    if (!built || built->index.segments.size() < 4) std::abort();
    streams.push_back(std::move(*built));
    if (!open(flow::index::to_bytes(streams, identity, {})).ok()) std::abort();
  }

  static std::shared_ptr<trace::TraceBundle> make_bundle() {
    trace_unit::generator::GeneratorConfig config;
    config.psb_bytes = 256;
    config.mtc = config.cyc = true;
    config.tsc_ctc_numerator = 168;
    config.tsc_ctc_denominator = 2;
    walk::WalkOptions options;
    options.seed = 5;
    options.steps = 3000;
    options.overflow_per_mille = 3;
    return flow::roundtrip::bundle_of(walk::random_walk(options), config);
  }

  [[nodiscard]] base::Result<std::shared_ptr<const flow::index::Index>> open(
      std::vector<std::uint8_t> bytes) const {
    return flow::index::Index::read(trace::TraceBuffer::from_vector(std::move(bytes)), *bundle,
                                    flow::Resync::IP, {});
  }

  std::shared_ptr<trace::TraceBundle> bundle;
  code::image::Image image;
  flow::CodeCachePool pool;
  std::vector<flow::index::BuiltStream> streams;
  std::uint64_t identity = flow::index::identity_of(*bundle, flow::Resync::IP);
};

void change(std::vector<std::uint8_t>& bytes, Input& in) {
  const std::uint8_t how = in.byte();
  if (how < 16) {
    bytes.resize(in.below(bytes.size() + 16), how);
  } else if (!bytes.empty()) {
    bytes[in.below(bytes.size())] = in.byte();
  }
}

void change(flow::index::Segment& segment, Input& in) {
  std::uint64_t* const fields[] = {
      &segment.psb,   &segment.begin,    &segment.ip,        &segment.instructions, &segment.blocks,
      &segment.order, &segment.troubles, &segment.tsc_least, &segment.tsc_most,     &segment.bytes_sum};
  const std::size_t which = in.below(std::size(fields) + 2);
  if (which < std::size(fields)) {
    *fields[which] = (in.byte() & 1U) != 0 ? in.word() : *fields[which] + in.below(512) - 256;
  } else if (which == std::size(fields)) {
    segment.flags = in.byte();
  } else {
    segment.space = in.byte();
  }
}

void change(flow::index::RowTotals& rows, Input& in) {
  std::uint64_t* const fields[] = {&rows.instructions, &rows.blocks, &rows.branches,
                                   &rows.events,       &rows.errors, &rows.gaps};
  *fields[in.below(std::size(fields))] = in.word();
}

void change(flow::index::BuiltStream& stream, Input& in) {
  const std::size_t at = in.below(stream.contents.size());
  switch (in.byte() % 5) {
    case 0:
      return change(stream.contents[at].checkpoint, in);
    case 1:
      return change(stream.contents[at].time, in);
    case 2:
      return change(stream.contents[at].lines, in);
    case 3:
      return change(stream.index.rows, in);
    default:
      return change(stream.index.segments[at], in);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Scene scene;
  static_cast<void>(scene.open({data, data + size}));
  Input in({data, size});
  const std::uint8_t choices = in.byte();
  const std::uint64_t select = in.word();
  auto streams = scene.streams;
  while (!in.empty()) change(streams[0], in);
  if ((choices & 1U) != 0) streams[0].index.timeless = true;
  const auto opened = scene.open(flow::index::to_bytes(std::move(streams), scene.identity, {}));
  if (!opened.ok()) return 0;
  flow::decoded::Reading reading;
  reading.index = opened.value();
  reading.table = flow::decoded::kFlowTables[choices / 2 % flow::decoded::kFlowTables.size()];
  const auto& segments = opened.value()->streams()[0].segments;
  const flow::index::Segment& segment = segments[select % segments.size()];
  if (select == 0) {
    // All rows: room for those that the index claims is taken at once.
  } else if ((choices & 128U) != 0) {
    reading.selection.by_time = true;
    reading.selection.tsc_begin = segment.tsc_least;
    reading.selection.tsc_end = segment.tsc_least + 1 + (select >> 32U);
  } else {
    reading.selection.ips.push_back({segment.ip, segment.ip + (select >> 48U)});
  }
  static_cast<void>(flow::decoded::read(scene.bundle, scene.image, {}, &scene.pool, reading));
  return 0;
}
