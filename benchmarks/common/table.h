// Reads one table of a trace by the columns layer, as Python does. Keeps the image and the decoded code.
#pragma once

#include <memory>
#include <vector>

#include "common/contest.h"
#include "flow/decoder/decoder.h"
#include "tables/columns/read/reader.h"

namespace ptkit::bench {

class Session {
 public:
  // `bundle` must outlive the session.
  explicit Session(const trace::TraceBundle& bundle)
      : bundle_(std::shared_ptr<void>(), &bundle), image_(bundle_), code_(image_) {}

  // Counts all edges of some streams. Rows: branches.
  [[nodiscard]] Outcome edges(std::vector<std::uint32_t> streams) {
    tables::columns::Request request;
    request.table = tables::columns::TableId::edges;
    request.time = false;
    auto reader = open(request, std::move(streams));
    while (reader->step(SIZE_MAX) == tables::columns::TableReader::Step::MORE) {
    }
    Outcome outcome;
    outcome.errors = reader->error_rows();
    if (const auto batch = reader->take(SIZE_MAX)) add_edges(*batch, outcome);
    return outcome;
  }

  // Every branch of the first stream, in parts that share memory.
  [[nodiscard]] Outcome branches(std::size_t part) {
    using tables::columns::Column;
    tables::columns::Request request;
    request.table = tables::columns::TableId::branches;
    request.time = false;
    request.mask = tables::columns::ColumnMask{1} << tables::columns::index_of(Column::branches_from_ip) |
                   tables::columns::ColumnMask{1} << tables::columns::index_of(Column::branches_to_ip) |
                   tables::columns::ColumnMask{1} << tables::columns::index_of(Column::branches_kind);
    const auto memory = tables::columns::take_part(*memory_, request.table, request.mask,
                                                   part + tables::columns::TableReader::kSlackRows);
    auto reader = open(request, {0});
    Outcome outcome;
    for (;;) {
      reader->attach(memory);
      auto step = tables::columns::TableReader::Step::MORE;
      while (step == tables::columns::TableReader::Step::MORE) step = reader->step(part);
      std::vector<tables::columns::OwnerRun> runs;
      const tables::columns::PartMemory rows = reader->end_part(part, runs);
      outcome.rows += rows.rows;
      outcome.errors += reader->error_rows();
      static_cast<void>(reader->take_errors());
      static_cast<void>(reader->take_gaps());
      const auto* const to =
          static_cast<const std::uint64_t*>(rows.columns[tables::columns::index_of(Column::branches_to_ip)]);
      if (rows.rows != 0) outcome.sum += to[rows.rows - 1];
      if (rows.rows < part) return outcome;
    }
  }

 private:
  [[nodiscard]] std::unique_ptr<tables::columns::TableReader> open(const tables::columns::Request& request,
                                                                   std::vector<std::uint32_t> streams) {
    const packet::Errata errata = packet::errata_for(bundle_->configuration.cpu);
    auto source = [this, errata](std::uint32_t index, flow::FlowSink& sink,
                                 time::TimeTrack* track) -> std::unique_ptr<flow::RowSource> {
      flow::FlowOptions options;
      options.errata = errata;
      return std::make_unique<flow::FlowDecoder>(bundle_->streams[index], bundle_->configuration, image_,
                                                 options, sink, track, &code_);
    };
    tables::columns::TableReader::Input input;
    input.bundle = bundle_;
    input.streams = std::move(streams);
    input.errata = errata;
    input.factory = std::move(source);
    return std::make_unique<tables::columns::TableReader>(std::move(input), request);
  }

  // What is digested is as small as the code, so that it is always rows.
  static void add_edges(tables::columns::Batch& batch, Outcome& outcome) {
    using tables::columns::Column;
    Digest digest;
    for (std::size_t row = 0; row < batch.rows(); ++row) {
      const std::uint64_t count = batch.counts<Column::edges_count>()[row];
      outcome.rows += count;
      digest.add(batch.cells<Column::edges_from_ip>()[row]);
      digest.add(batch.cells<Column::edges_to_ip>()[row]);
      digest.add(batch.cells<Column::edges_kind>()[row]);
      digest.add(count);
    }
    outcome.sum = batch.rows();
    outcome.digest = digest.value();
  }

  std::shared_ptr<const trace::TraceBundle> bundle_;
  code::image::Image image_;
  flow::CodeCachePool code_;
  std::shared_ptr<tables::columns::MemoryPool> memory_ = std::make_shared<tables::columns::MemoryPool>();
};

}  // namespace ptkit::bench
