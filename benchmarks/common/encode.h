// The blocks of a trace, as an emulator executes them: the input of encoders.
#pragma once

#include <map>
#include <vector>

#include "capture/linux/encode/guest_code.h"
#include "common/flow.h"
#include "trace_unit/generator/config.h"

namespace ptkit::bench {

inline constexpr std::size_t kLineBlocks = 14;
inline constexpr std::uint64_t kLineTicks = 150;
inline constexpr std::uint64_t kFirstTsc = 1'000'000;

struct Blocks final : flow::FlowSink {
  explicit Blocks(const trace::TraceBundle& bundle) : image_(bundle) { decode_flow(bundle, *this); }

  capture::GuestCode code;
  std::vector<std::uint32_t> numbers;  // whole lines

 private:
  void on_block(const flow::Block& block) override {
    if (block.mode != code::insn::ExecMode::BITS64) return;
    const auto [found, fresh] = known_.try_emplace({block.ip, block.size}, 0);
    if (fresh) {
      std::vector<std::uint8_t> bytes(block.size);
      bytes.resize(image_.read(block.ip, bytes));
      found->second = code.add(block.ip, bytes, 0);
    }
    numbers.push_back(found->second);
  }

  // The bundle's code at the time of its end.
  struct View {
    explicit View(const trace::TraceBundle& bundle)
        : image(std::shared_ptr<const trace::TraceBundle>(std::shared_ptr<void>(), &bundle)),
          view(image.view(bundle.streams.front().space, trace::kTscMax - 1)) {}
    [[nodiscard]] std::size_t read(std::uint64_t ip, std::vector<std::uint8_t>& out) const {
      return view.read(ip, out);
    }
    code::image::Image image;
    const code::image::CodeView& view;
  };

  View image_;
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint32_t> known_;
};

// Computed once for a process, in the first round.
inline const Blocks& blocks_of(const trace::TraceBundle& bundle) {
  static const Blocks blocks(bundle);
  return blocks;
}

// TSC and MTC packets as in recordings; PSBs at beginnings of lines.
inline trace_unit::generator::GeneratorConfig encode_config() {
  trace_unit::generator::GeneratorConfig config;
  config.mtc = true;
  config.mtc_period = 8;
  config.chunk_bytes = std::size_t{64} << 10;
  return config;
}

// Counts bytes, and computes their digest on request.
template <bool kDigest>
class ByteSink {
 public:
  void add(base::Bytes bytes) {
    size_ += bytes.size();
    if constexpr (kDigest) {
      for (const std::uint8_t byte : bytes) digest_.add(byte);
    }
  }
  [[nodiscard]] Outcome outcome(std::uint64_t rows, std::uint64_t errors) const {
    return {rows, errors, size_, kDigest ? digest_.value() : 0};
  }

 private:
  std::uint64_t size_ = 0;
  Digest digest_;
};

}  // namespace ptkit::bench
