// A handle of the C library that closes itself, and calls that must succeed.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <tuple>
#include <vector>

#include "ptkit.h"

namespace ptkit::api::c {

struct Closer {
  void operator()(ptkit_coverage* coverage) const noexcept { ptkit_coverage_close(coverage); }
};
using Handle = std::unique_ptr<ptkit_coverage, Closer>;

inline ptkit_options default_options() {
  ptkit_options options{};
  options.size = sizeof options;
  return options;
}

inline Handle open_handle(const ptkit_options* options = nullptr) {
  ptkit_coverage* coverage = nullptr;
  EXPECT_EQ(ptkit_coverage_open(options, &coverage), PTKIT_OK) << ptkit_failure_message();
  return Handle(coverage);
}

// With code at 1000, which the caller keeps.
inline Handle open_with_code(const std::vector<std::uint8_t>& code) {
  Handle handle = open_handle();
  EXPECT_EQ(ptkit_coverage_add_code(handle.get(), 0x1000, code.data(), code.size()), PTKIT_OK);
  return handle;
}

inline ptkit_outcome decode(const Handle& handle, const std::vector<std::uint8_t>& stream,
                            std::uint8_t* hits = nullptr, std::uint8_t* virgin = nullptr) {
  ptkit_outcome outcome{};
  outcome.size = sizeof outcome;
  EXPECT_EQ(ptkit_coverage_decode(handle.get(), stream.data(), stream.size(), hits, virgin, &outcome),
            PTKIT_OK)
      << ptkit_failure_message();
  return outcome;
}

using EdgeRow =
    std::tuple<std::uint64_t, std::uint64_t, std::uint32_t, std::uint64_t>;  // from, to, kind, count
using ListEdges = size_t (*)(ptkit_coverage*, ptkit_edge*, size_t);

inline std::vector<EdgeRow> sorted_edges(const Handle& handle, ListEdges list = ptkit_coverage_edges) {
  std::vector<ptkit_edge> edges(list(handle.get(), nullptr, 0));
  EXPECT_EQ(list(handle.get(), edges.data(), edges.size()), edges.size());
  std::vector<EdgeRow> rows;
  for (const ptkit_edge& edge : edges) {
    EXPECT_EQ(edge.hash, ptkit_edge_hash(edge.from, edge.to));
    rows.emplace_back(edge.from, edge.to, edge.kind, edge.count);
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

}  // namespace ptkit::api::c
