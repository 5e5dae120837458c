// Hand-written streams and code, and a sink that records all rows.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "code/image/image.h"
#include "flow/rows/sink.h"

namespace ptkit::test {

using ByteVector = std::vector<std::uint8_t>;

class StreamWriter {
 public:
  StreamWriter& bytes(std::initializer_list<int> values) {
    for (const int value : values) data_.push_back(static_cast<std::uint8_t>(value));
    return *this;
  }
  StreamWriter& psb() {
    for (int i = 0; i < 8; ++i) bytes({0x02, 0x82});
    return *this;
  }
  StreamWriter& psbend() { return bytes({0x02, 0x23}); }
  StreamWriter& mode64() { return bytes({0x99, 0x01}); }
  // `opcode` of TIP 0x0d, TIP.PGE 0x11, TIP.PGD 0x01, FUP 0x1d, with six bytes of IP.
  StreamWriter& ip(int opcode, std::uint64_t address) {
    bytes({0x60 | opcode});
    for (int i = 0; i < 6; ++i) bytes({static_cast<int>(address >> (8 * i) & 0xff)});
    return *this;
  }
  StreamWriter& tip(std::uint64_t address) { return ip(0x0d, address); }
  StreamWriter& enable(std::uint64_t address) { return ip(0x11, address); }
  StreamWriter& disable(std::uint64_t address) { return ip(0x01, address); }
  StreamWriter& fup(std::uint64_t address) { return ip(0x1d, address); }
  // Up to six branches, oldest first, 'T' or 'N'.
  StreamWriter& tnt(const std::string& branches) {
    unsigned value = 1;
    for (const char branch : branches) value = value << 1 | (branch == 'T' ? 1U : 0U);
    return bytes({static_cast<int>(value << 1)});
  }
  [[nodiscard]] const ByteVector& data() const { return data_; }
  [[nodiscard]] std::uint64_t size() const { return data_.size(); }

 private:
  ByteVector data_;
};

struct RecordingSink : flow::FlowSink {
  std::vector<std::uint64_t> ips;
  std::vector<flow::Block> blocks;  // their spans are not valid
  std::vector<flow::Branch> branches;
  std::vector<flow::Event> events;
  std::vector<flow::FlowError> errors;
  std::vector<flow::Gap> gaps;
  std::vector<flow::Context> contexts;
  std::string order;  // one letter per row: b(lock) B(ranch) e(vent) E(rror) g(ap)
  flow::StreamSpan last;
  bool went_back = false;
  std::size_t stop_after = SIZE_MAX;

  void note(char letter, const flow::StreamSpan& span) {
    went_back = went_back || span.since < last.since || span.offset < last.offset || span.since > span.offset;
    last = span;
    order += letter;
  }
  void on_context(const flow::Context& context) override { contexts.push_back(context); }
  void on_block(const flow::Block& block) override {
    note('b', block.span);
    blocks.push_back(block);
    std::uint64_t ip = block.ip;
    for (const auto& insn : block.insns) {
      ips.push_back(ip);
      ip += insn.size;
    }
  }
  void on_branch(const flow::Branch& branch) override {
    note('B', branch.span);
    branches.push_back(branch);
  }
  void on_event(const flow::Event& event) override {
    note('e', event.span);
    events.push_back(event);
  }
  void on_error(const flow::FlowError& error) override {
    note('E', error.span);
    errors.push_back(error);
  }
  void on_gap(const flow::Gap& gap) override {
    order += 'g';
    gaps.push_back(gap);
  }
  [[nodiscard]] bool full() const override { return blocks.size() >= stop_after; }
};

inline std::shared_ptr<const trace::TraceBundle> make_bundle(const ByteVector& stream, std::uint64_t address,
                                                             const ByteVector& code) {
  auto bundle = std::make_shared<trace::TraceBundle>();
  trace::Stream one;
  one.data = trace::TraceBuffer::from_vector(stream);
  bundle->streams.push_back(one);
  trace::CodeRegion region;
  region.address = address;
  region.bytes = trace::TraceBuffer::from_vector(code);
  region.size = code.size();
  bundle->code.push_back(region);
  return bundle;
}

}  // namespace ptkit::test
