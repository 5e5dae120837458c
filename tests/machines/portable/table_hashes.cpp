// Decodes plain bundles into all tables, and prints rows and a hash of each: table_hashes FILE...
// Two machines have equal tables if their lines are equal.
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "base/cpu/isa.h"
#include "base/system/mapped_file.h"
#include "flow/decoder/decoder.h"
#include "plain_bundle.h"
#include "tables/columns/read/reader.h"

namespace ptkit::portable {
namespace {

using Bundle = std::shared_ptr<trace::TraceBundle>;

Bundle read_bundle(const std::string& path) {
  const auto file = base::map_file(path);
  if (!file.ok()) {
    static_cast<void>(std::fprintf(stderr, "%s\n", file.failure().detail.c_str()));
    return nullptr;
  }
  auto bundle = std::make_shared<trace::TraceBundle>();
  base::FieldReader fields(file.value().bytes);
  describe(fields, *bundle);
  if (fields.good() && fields.rest().empty()) return bundle;
  static_cast<void>(
      std::fprintf(stderr, "%s: is no plain bundle; write it with plain_bundle\n", path.c_str()));
  return nullptr;
}

// FNV-1a, for bytes.
class Hash {
 public:
  void add(base::Bytes bytes) noexcept {
    for (const std::uint8_t byte : bytes) value_ = (value_ ^ byte) * 0x100000001b3ULL;
  }
  void add(std::uint64_t word) noexcept {
    base::FieldWriter fields;
    fields(word);
    add(fields.bytes());
  }
  [[nodiscard]] std::uint64_t value() const noexcept { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325ULL;
};

// Adds the columns and runs of a table. False: out of memory.
bool add_rows(tables::columns::Batch* batch, Hash& hash) {
  if (batch == nullptr) return true;
  if (!batch->set_varying(tables::columns::kAllColumns)) return false;
  const auto all = tables::columns::columns_of(batch->table());
  hash.add(batch->rows());
  for (std::size_t i = 0; i < all.size() && batch->rows() != 0; ++i) {
    if ((batch->mask() >> i & 1) == 0) continue;
    hash.add({batch->data(i), batch->rows() * tables::columns::cell_size(all[i].type)});
  }
  for (const tables::columns::OwnerRun& run : batch->runs()) {
    if (run.row == batch->rows()) continue;
    base::FieldWriter fields;
    fields(run.row), fields(run.stream), fields(run.cpu), fields(run.pid), fields(run.tid), fields(run.space);
    fields(run.flags);
    hash.add(fields.bytes());
  }
  return true;
}

struct Sums {
  std::size_t rows = 0;
  Hash hash;
};

tables::columns::TableReader::Input input_of(const Bundle& bundle, const code::image::Image& image,
                                             flow::CodeCachePool& pool) {
  tables::columns::TableReader::Input input;
  input.bundle = bundle;
  for (std::uint32_t i = 0; i < bundle->streams.size(); ++i) {
    if (bundle->streams[i].kind == trace::StreamKind::PROCESSOR_TRACE) input.streams.push_back(i);
  }
  input.errata = packet::errata_for(bundle->configuration.cpu);
  input.factory = [&](std::uint32_t stream, flow::FlowSink& sink, time::TimeTrack* track) {
    return std::make_unique<flow::FlowDecoder>(bundle->streams[stream], bundle->configuration, image,
                                               flow::FlowOptions{}, sink, track, &pool);
  };
  return input;
}

// False: out of memory.
bool read_table(const Bundle& bundle, const tables::columns::Request& request, Sums& sums) {
  const code::image::Image image(bundle);
  flow::CodeCachePool pool(image);
  tables::columns::TableReader reader(input_of(bundle, image, pool), request);
  using Step = tables::columns::TableReader::Step;
  for (auto step = Step::MORE; step != Step::END;) {
    step = reader.step(SIZE_MAX);
    if (step == Step::MORE) continue;
    if (step != Step::END && step != Step::READY) return false;
    const auto rows = reader.take(SIZE_MAX);
    if (rows == nullptr) return false;
    sums.rows += rows->rows();
    const auto errors = reader.take_errors();
    const auto gaps = reader.take_gaps();
    if (!add_rows(rows.get(), sums.hash) || !add_rows(errors.get(), sums.hash) ||
        !add_rows(gaps.get(), sums.hash))
      return false;
  }
  return true;
}

bool print_tables(const std::string& path) {
  const Bundle bundle = read_bundle(path);
  if (bundle == nullptr) return false;
  const std::string name = std::filesystem::path(path).filename().string();
  using tables::columns::TableId;
  for (const TableId table : {TableId::packets, TableId::branches, TableId::blocks, TableId::instructions,
                              TableId::events, TableId::edges}) {
    for (const bool time : {false, true}) {
      tables::columns::Request request;
      request.table = table;
      request.time = request.estimate = time;
      Sums sums;
      if (!read_table(bundle, request, sums)) {
        static_cast<void>(std::fprintf(stderr, "%s: out of memory\n", path.c_str()));
        return false;
      }
      const std::string_view table_name = tables::columns::table_name(table);
      std::printf("%s %.*s %s %zu %016llx\n", name.c_str(), static_cast<int>(table_name.size()),
                  table_name.data(), time ? "time" : "plain", sums.rows,
                  static_cast<unsigned long long>(sums.hash.value()));
    }
  }
  return true;
}

}  // namespace
}  // namespace ptkit::portable

int main(int count, char** arguments) {
  const std::string_view isa = ptkit::base::cpu::isa_name(ptkit::base::cpu::isa_choice().isa);
  static_cast<void>(
      std::fprintf(stderr, "instruction set: %.*s\n", static_cast<int>(isa.size()), isa.data()));
  for (int i = 1; i < count; ++i) {
    if (!ptkit::portable::print_tables(arguments[i])) return 1;
  }
  return 0;
}
