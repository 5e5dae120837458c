// Encoders with their blocks and their trace bytes.
#pragma once

#include <gtest/gtest.h>

#include <optional>

#include "decoded.h"
#include "emulated.h"

namespace ptkit::capture::test {

using trace_unit::generator::GeneratorConfig;

inline GeneratorConfig config_of(bool tsc, bool mtc, std::uint8_t period, bool cyc = false) {
  GeneratorConfig config;
  config.tsc = tsc;
  config.mtc = mtc;
  config.cyc = cyc;
  config.mtc_period = period;
  config.psb_bytes = 2048;
  return config;
}

struct Encoded {
  std::vector<std::uint8_t> bytes;
  std::uint64_t instructions = 0;
  std::uint64_t branches = 0;
  std::uint64_t unexplained = 0;
};

inline Encoded encode(const Emulation& run, const GeneratorConfig& config, const Delivery& how,
                      BlockLogs logs = {}, const AddressFilter* filter = nullptr,
                      BlockEncoder::Watcher watcher = {}) {
  Encoded out;
  BlockEncoder encoder(
      config, run.code,
      [&out](base::Bytes part) { out.bytes.insert(out.bytes.end(), part.begin(), part.end()); },
      std::move(logs), filter, std::move(watcher));
  deliver(run, encoder, how);
  EXPECT_EQ(encoder.bytes(), out.bytes.size());
  out.instructions = encoder.instructions();
  out.branches = encoder.branches();
  out.unexplained = encoder.unexplained();
  return out;
}

inline constexpr std::uint64_t kBase = 0x401000;

// Assembled code, its blocks, and an encoder for them.
struct ManualBlocks {
  explicit ManualBlocks(std::vector<std::uint8_t> assembled) : regions{{kBase, std::move(assembled)}} {}

  // The block at [begin, end) of the code.
  std::uint32_t block(std::size_t begin, std::size_t end, std::uint64_t valid_from = 0) {
    return code.add(kBase + begin, base::Bytes(regions[0].bytes).subspan(begin, end - begin), valid_from);
  }
  BlockEncoder& encoder(const AddressFilter* filter = nullptr) {
    if (!encoder_) {
      encoder_.emplace(
          config, code, [this](base::Bytes part) { bytes.insert(bytes.end(), part.begin(), part.end()); },
          BlockLogs{}, filter);
    }
    return *encoder_;
  }
  Decoded decoded() { return decode(bundle_for(regions, config, bytes)); }

  GeneratorConfig config = config_of(true, true, 8);
  std::vector<walk::CodeRegion> regions;
  GuestCode code;
  std::vector<std::uint8_t> bytes;

 private:
  std::optional<BlockEncoder> encoder_;
};

inline std::vector<std::uint64_t> at(std::initializer_list<std::uint64_t> offsets) {
  std::vector<std::uint64_t> out;
  for (const std::uint64_t offset : offsets) out.push_back(kBase + offset);
  return out;
}

}  // namespace ptkit::capture::test
