// Whole tables, read in any way, and where two readings differ.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "code/image/image.h"
#include "flow/decoder/decoder.h"
#include "tables/columns/read/reader.h"

namespace ptkit::flow::decoded {

using tables::columns::TableId;

inline constexpr std::array<TableId, 7> kFlowTables = {
    TableId::branches, TableId::blocks, TableId::instructions, TableId::events,
    TableId::edges,    TableId::errors, TableId::gaps};

// The cells of all columns, and their owners.
struct Transitions {
  std::vector<std::vector<std::uint8_t>> columns;
  std::vector<tables::columns::OwnerRun> runs;
  std::size_t rows = 0;

  // Parts that follow each other, so that runs do not show where a part began.
  void add(tables::columns::Batch& batch) {
    const auto infos = tables::columns::columns_of(batch.table());
    columns.resize(infos.size());
    for (std::size_t i = 0; i < infos.size(); ++i) {
      if (((batch.mask() >> i) & 1) == 0 || batch.rows() == 0) continue;
      const std::size_t size = tables::columns::cell_size(infos[i].type);
      if (batch.is_uniform(i)) {
        const std::uint64_t value = batch.uniform_value(i);
        std::vector<std::uint8_t> cells(batch.rows() * size);
        for (std::size_t k = 0; k < cells.size(); ++k)
          cells[k] = static_cast<std::uint8_t>(value >> (k % size * 8));
        columns[i].insert(columns[i].end(), cells.begin(), cells.end());
        continue;
      }
      const std::uint8_t* const data = batch.data(i);
      columns[i].insert(columns[i].end(), data, data + batch.rows() * size);
    }
    for (tables::columns::OwnerRun run : batch.runs()) {
      if (run.row >= batch.rows()) continue;
      run.row += rows;
      if (runs.empty() || !runs.back().same_owner(run)) runs.push_back(run);
    }
    rows += batch.rows();
  }
};

struct Tables {
  TableId table = TableId::branches;
  Transitions main;
  Transitions errors;
  Transitions gaps;
};

struct Reading {
  TableId table = TableId::branches;
  tables::columns::ColumnMask mask = tables::columns::kAllColumns;
  bool time = true;
  std::size_t part = SIZE_MAX;  // rows
  std::size_t threads = 1;
  std::size_t segment = 0;
  tables::columns::Selection selection;
  std::shared_ptr<const index::Index> index{};
};

// The bundle's streams, read with these options. `pool` may be null.
inline Tables read(const std::shared_ptr<trace::TraceBundle>& bundle, const code::image::Image& image,
                   const FlowOptions& options, CodeCachePool* pool, const Reading& reading) {
  tables::columns::Request request;
  request.table = reading.table;
  request.mask = reading.mask;
  request.time = reading.time;
  request.selection = reading.selection;
  tables::columns::TableReader::Input input;
  input.bundle = bundle;
  for (std::uint32_t i = 0; i < bundle->streams.size(); ++i) input.streams.push_back(i);
  input.errata = options.errata;
  input.threads = reading.threads;
  input.segment = reading.segment;
  input.index = reading.index;
  input.factory = [&](std::uint32_t stream, FlowSink& sink, time::TimeTrack* track) {
    return std::make_unique<FlowDecoder>(bundle->streams[stream], bundle->configuration, image, options, sink,
                                         track, pool);
  };
  input.decoder = [&](const trace::Stream& one, FlowSink& sink, time::TimeTrack* track, const FlowState* from,
                      bool speculative) {
    if (from == nullptr) {
      return std::make_unique<FlowDecoder>(one, bundle->configuration, image, options, sink, track, pool);
    }
    return std::make_unique<FlowDecoder>(one, bundle->configuration, image, options, sink, track, pool, *from,
                                         speculative);
  };
  tables::columns::TableReader reader(std::move(input), request);
  // Edges are counted over the whole stream: their table has no parts.
  const std::size_t part = reading.table == TableId::edges ? SIZE_MAX : reading.part;
  Tables out;
  out.table = reading.table;
  auto step = tables::columns::TableReader::Step::MORE;
  while (step != tables::columns::TableReader::Step::END &&
         step != tables::columns::TableReader::Step::NO_MEMORY) {
    step = reader.step(part);
    if (step == tables::columns::TableReader::Step::MORE) continue;
    if (const auto batch = reader.take(part)) out.main.add(*batch);
    if (const auto errors = reader.take_errors()) out.errors.add(*errors);
    if (const auto gaps = reader.take_gaps()) out.gaps.add(*gaps);
  }
  return out;
}

inline std::string difference(TableId table, const Transitions& a, const Transitions& b) {
  const std::string rows = " of " + std::to_string(a.rows) + " and " + std::to_string(b.rows) + " rows";
  const auto infos = tables::columns::columns_of(table);
  const std::size_t count = std::max(a.columns.size(), b.columns.size());
  for (std::size_t i = 0; i < count && a.rows + b.rows != 0; ++i) {
    const std::vector<std::uint8_t> none;
    const auto& x = i < a.columns.size() ? a.columns[i] : none;
    const auto& y = i < b.columns.size() ? b.columns[i] : none;
    if (x == y) continue;
    const std::size_t size = tables::columns::cell_size(infos[i].type);
    const std::size_t least = std::min(x.size(), y.size());
    const auto at =
        static_cast<std::size_t>(
            std::mismatch(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(least), y.begin()).first -
            x.begin()) /
        size;
    const auto cell = [size](const auto& cells, std::size_t row) {
      std::uint64_t value = 0;
      if ((row + 1) * size <= cells.size()) std::memcpy(&value, cells.data() + row * size, size);
      return std::to_string(value);
    };
    return std::string(infos[i].name) + " of row " + std::to_string(at) + rows + ": " + cell(x, at) +
           " and " + cell(y, at);
  }
  const auto same = [](const tables::columns::OwnerRun& x, const tables::columns::OwnerRun& y) {
    return x.row == y.row && x.same_owner(y);
  };
  if (!std::equal(a.runs.begin(), a.runs.end(), b.runs.begin(), b.runs.end(), same)) return "runs" + rows;
  return a.rows == b.rows ? "" : "number" + rows;
}

// Empty: there is none.
inline std::string difference(const Tables& a, const Tables& b) {
  if (auto text = difference(a.table, a.main, b.main); !text.empty()) return "rows: " + text;
  if (auto text = difference(TableId::errors, a.errors, b.errors); !text.empty()) return "errors: " + text;
  if (auto text = difference(TableId::gaps, a.gaps, b.gaps); !text.empty()) return "gaps: " + text;
  return "";
}

}  // namespace ptkit::flow::decoded
