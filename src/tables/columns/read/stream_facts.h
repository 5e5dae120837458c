// Facts about a bundle's streams that earlier reads found out.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "packet/errata.h"
#include "tables/columns/schema.h"
#include "trace/bundle.h"

namespace ptkit::tables::columns {

// Any thread may ask and note.
class StreamFacts {
 public:
  explicit StreamFacts(std::size_t streams) : facts_(streams) {}

  // True if a stream has no TSC packet: no row of it has a time, so none has to be looked up. The first call
  // for a stream searches it. False also where that is not certain.
  [[nodiscard]] bool is_timeless(std::uint32_t index, const trace::Stream& stream,
                                 const packet::Errata& errata);

  // The number of rows that a table of a stream had, when all of them were read. A hint: another decoder may
  // find other rows.
  [[nodiscard]] std::optional<std::size_t> rows(std::uint32_t index, TableId table) const noexcept;
  void note_rows(std::uint32_t index, TableId table, std::size_t rows) noexcept;

 private:
  enum class Times : std::uint8_t { UNKNOWN, SOME, NONE };
  struct Facts {
    std::atomic<Times> times{Times::UNKNOWN};
    std::array<std::atomic<std::size_t>, kTableCount> rows_and_one{};  // 0: not known
  };
  std::vector<Facts> facts_;
};

}  // namespace ptkit::tables::columns
