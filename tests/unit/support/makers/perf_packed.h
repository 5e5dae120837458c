// COMPRESSED records, as perf record -z writes them.
#pragma once

#include <gtest/gtest.h>
#include <zstd.h>

#include <string>

#include "perf_sample.h"

namespace ptkit::formats::test {

// Packs `records` to one zstd stream. Each COMPRESSED record holds `step` bytes of it.
inline std::string packed(const std::string& records, std::size_t step, bool padded = false) {
  std::string out;
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  for (std::size_t at = 0; at < records.size(); at += step) {
    const std::string part = records.substr(at, step);
    std::string room(4096, '\0');
    ZSTD_inBuffer in{part.data(), part.size(), 0};
    ZSTD_outBuffer to{room.data(), room.size(), 0};
    EXPECT_EQ(ZSTD_compressStream2(context, &to, &in, ZSTD_e_flush), 0U);
    room.resize(to.pos);
    const std::string size = Bytes().add(std::uint64_t{to.pos}).str();
    if (padded) room.resize((to.pos + 7) / 8 * 8, '\x55');
    out += padded ? record(83, 0, size + room) : record(81, 0, room);
  }
  ZSTD_freeCCtx(context);
  return out;
}

}  // namespace ptkit::formats::test
