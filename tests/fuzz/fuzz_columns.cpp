// Any stream in parts of any size gives the rows of the whole table. Nothing crashes or hangs.
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "code/image/image.h"
#include "flow/decoder/decoder.h"
#include "tables/columns/read/reader.h"

namespace {

using namespace ptkit;

// `again: dec ecx; jnz again; call again; ret; jmp rax`, at 0x1000.
constexpr std::uint8_t kCode[] = {0xff, 0xc9, 0x75, 0xfc, 0xe8, 0xf7, 0xff, 0xff, 0xff, 0xc3, 0xff, 0xe0};

std::shared_ptr<trace::TraceBundle> make_bundle(base::Bytes stream) {
  auto bundle = std::make_shared<trace::TraceBundle>();
  trace::CodeRegion region;
  region.address = 0x1000;
  region.bytes = trace::TraceBuffer::from_vector({std::begin(kCode), std::end(kCode)});
  region.size = sizeof kCode;
  bundle->code.push_back(region);
  for (int copies = 0; copies < 2; ++copies) {
    trace::Stream one;
    one.data = trace::TraceBuffer::from_vector({stream.begin(), stream.end()});
    bundle->streams.push_back(one);
  }
  return bundle;
}

struct Rows {
  std::size_t main = 0;
  std::size_t errors = 0;
  std::size_t gaps = 0;
  bool operator==(const Rows&) const = default;
};

Rows read(const std::shared_ptr<trace::TraceBundle>& bundle, const code::image::Image& image,
          tables::columns::TableId table, std::size_t part) {
  tables::columns::Request request;
  request.table = table;
  request.sync = false;
  tables::columns::TableReader::Input input;
  input.bundle = bundle;
  input.streams = {0, 1};
  input.factory = [&](std::uint32_t stream, flow::FlowSink& sink, time::TimeTrack* track) {
    return std::make_unique<flow::FlowDecoder>(bundle->streams[stream], bundle->configuration, image,
                                               flow::FlowOptions{}, sink, track);
  };
  tables::columns::TableReader reader(std::move(input), request);
  Rows rows;
  auto step = tables::columns::TableReader::Step::MORE;
  while (step != tables::columns::TableReader::Step::END) {
    step = reader.step(part);
    if (step == tables::columns::TableReader::Step::MORE) continue;
    const auto batch = reader.take(part);
    if (batch == nullptr || batch->rows() > part) std::abort();
    rows.main += batch->rows();
    if (const auto errors = reader.take_errors()) rows.errors += errors->rows();
    if (const auto gaps = reader.take_gaps()) rows.gaps += gaps->rows();
  }
  return rows;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const auto table = static_cast<tables::columns::TableId>(data[0] % tables::columns::kTableCount);
  // Edges are counted over the whole stream: their table has no parts.
  const std::size_t part = table == tables::columns::TableId::edges ? SIZE_MAX : 1 + data[1] % 64u;
  const auto bundle = make_bundle({data + 2, size - 2});
  const code::image::Image image(bundle);
  if (read(bundle, image, table, part) != read(bundle, image, table, SIZE_MAX)) std::abort();
  return 0;
}
