// kernel/common on the trace unit in software: what it accepts must not fault there, and what it refuses
// must.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "common/pt_check.h"
#include "common/pt_topa.h"
#include "packet/decoder.h"
#include "ptmodel/trace_unit.h"
#include "trace_unit/msr/caps.h"
#include "unit/support/units/random_state.h"

namespace {

using ptkit::ptmodel::MsrResult;
using ptkit::ptmodel::TraceUnit;
using ptkit::trace_unit::msr::Capabilities;
using ptkit::trace_unit::msr::RegisterValues;
using ptkit::trace_unit::msr::state_of;

constexpr std::uint64_t kPage = 4096;

std::uint64_t bit(unsigned position) { return std::uint64_t{1} << position; }

// Memory, where every word that was not written is one region of a ToPA table, or leads back to its
// beginning.
class Memory : public ptkit::ptmodel::Platform {
 public:
  std::uint64_t read_physical(std::uint64_t address) override {
    if (const auto found = words.find(address); found != words.end()) return found->second;
    const std::uint64_t end = (address & ~(kPage - 1)) | 1U << PT_TOPA_END;
    return (address & (kPage - 1)) == 0 ? kRegion : end;
  }
  void write_physical(std::uint64_t address, ptkit::base::Bytes bytes) override {
    for (const std::uint8_t byte : bytes) trace[address++] = byte;
  }
  void topa_pmi() override { ++interrupts; }

  static constexpr std::uint64_t kRegion = 0x0800'0000 | 15U << PT_TOPA_SIZE_SHIFT;  // 128 MiB
  std::map<std::uint64_t, std::uint64_t> words;
  std::map<std::uint64_t, std::uint8_t> trace;
  int interrupts = 0;
};

struct Machine {
  explicit Machine(const Capabilities& capabilities = {}) : unit(capabilities, config(), memory) {
    unit.set_state({});
  }
  static ptkit::trace_unit::generator::GeneratorConfig config() {
    ptkit::trace_unit::generator::GeneratorConfig config;
    config.chunk_bytes = 16;
    return config;
  }
  pt_ops ops() {
    return {.write =
                [](void* context, std::uint32_t msr, std::uint64_t value) {
                  return static_cast<Machine*>(context)->unit.write_msr(msr, value, {0x1000, 0x1002}) ==
                                 MsrResult::OK
                             ? 0
                             : 1;
                },
            .read =
                [](void* context, std::uint32_t msr, std::uint64_t* value) {
                  return static_cast<Machine*>(context)->unit.read_msr(msr, *value) == MsrResult::OK ? 0 : 1;
                },
            .barrier = nullptr,
            .ctx = this};
  }
  [[nodiscard]] std::uint64_t at(std::uint32_t msr) const {
    std::uint64_t value = 0;
    EXPECT_EQ(unit.read_msr(msr, value), MsrResult::OK);
    return value;
  }
  void run(int branches) {
    for (int i = 0; i < branches; ++i) {
      now += 10;
      unit.set_time(now, now);
      unit.jump_indirect(0x2000 + static_cast<std::uint64_t>(i % 7) * 0x111);
    }
  }
  Memory memory;
  TraceUnit unit;
  std::uint64_t now = 0;
};

pt_state plain_state() {
  pt_state state{};
  state.ctl =
      bit(PT_CTL_OS) | bit(PT_CTL_USER) | bit(PT_CTL_BRANCH_EN) | bit(PT_CTL_TOPA) | bit(PT_CTL_DIS_RETC);
  state.output_base = 0x10000;
  state.output_mask_ptrs = 0x7f;
  return state;
}

// Neither a configuration that is accepted faults or ends in an error, nor one that is refused works.
TEST(Check, AgreesWithTheUnit) {
  std::mt19937_64 random(11);
  int accepted = 0;
  for (int turn = 0; turn < 40000; ++turn) {
    const Capabilities capabilities = ptkit::trace_unit::msr::tests::random_capabilities(random);
    RegisterValues values = ptkit::trace_unit::msr::tests::random_values(random, capabilities);
    // The table's own entries are not the check's concern.
    if ((values.ctl & bit(PT_CTL_TOPA)) != 0) values.output_mask_ptrs &= 0x07ff'ffff'0000'007fULL;
    const pt_state state = state_of(values);
    const pt_caps caps = ptkit::trace_unit::msr::caps_of(capabilities);
    Machine machine(capabilities);
    const pt_ops ops = machine.ops();
    pt_state loaded = state;
    // A unit that was stopped does not look at its output.
    loaded.status = pt_status_restarted(state.status);
    const bool valid = pt_check(&caps, &loaded, nullptr, nullptr) == 0;
    const bool started = pt_seq_start(&ops, &loaded) == 0;
    const bool works = started && (machine.at(PT_MSR_RTIT_STATUS) & bit(PT_STATUS_ERROR)) == 0;
    ASSERT_EQ(valid, works) << turn << std::hex << " ctl " << state.ctl << " ebx " << capabilities.leaf_14_ebx
                            << " ecx " << capabilities.leaf_14_ecx << " base " << state.output_base
                            << " mask " << state.output_mask_ptrs << " status " << loaded.status
                            << " started " << started;
    accepted += valid ? 1 : 0;
  }
  EXPECT_GT(accepted, 1000);
  EXPECT_LT(accepted, 39000);
}

TEST(Sequences, FaultInAnyOtherOrder) {
  Machine machine;
  const pt_ops ops = machine.ops();
  pt_state state = plain_state();
  ASSERT_EQ(pt_seq_start(&ops, &state), 0);
  EXPECT_EQ(pt_seq_start(&ops, &state), PT_E_BUSY);
  for (const std::uint32_t msr : {0x560U, 0x561U, 0x571U, 0x572U, 0x580U}) {
    EXPECT_NE(ops.write(ops.ctx, msr, machine.at(msr)), 0) << std::hex << msr;
  }
  EXPECT_NE(ops.write(ops.ctx, PT_MSR_RTIT_CTL, state.ctl | 1 | bit(PT_CTL_TSC_EN)), 0);
  ASSERT_EQ(pt_seq_pause(&ops, &state), 0);
  EXPECT_EQ(ops.write(ops.ctx, PT_MSR_RTIT_CR3_MATCH, 0), 0);
  ASSERT_EQ(pt_seq_resume(&ops, &state), 0);
  ASSERT_EQ(pt_seq_stop(&ops, &state), 0);
  EXPECT_EQ(machine.at(PT_MSR_RTIT_CTL), 0U);
}

// Bytes in the buffer, as a driver counts them, are those that the unit wrote.
TEST(Sequences, ReadBackWhereOutputIs) {
  for (const bool topa : {false, true}) {
    Machine machine;
    const pt_ops ops = machine.ops();
    pt_state state = plain_state();
    constexpr std::uint64_t kSize = 4 * kPage;
    std::vector<std::uint64_t> entries(16);
    pt_table table{.entries = entries.data(), .physical = 0x70'0000, .begin = 0, .capacity = 16};
    const pt_region regions[] = {{0x10'0000, kPage}, {0x20'0000, 2 * kPage}, {0x30'0000, kPage}};
    const pt_topa_options options{
        .interrupt_bytes = kSize, .ring = true, .one_entry = false, .largest_size = 15, .physical_bits = 46};
    pt_topa tables{};
    pt_output output{};
    if (topa) {
      ASSERT_EQ(pt_topa_build(&tables, &table, 1, regions, 3, &options), 0);
      for (std::size_t i = 0; i < entries.size(); ++i)
        machine.memory.words[table.physical + 8 * i] = entries[i];
      ASSERT_EQ(pt_topa_output(&tables, 0, &output), 0);
    } else {
      ASSERT_EQ(pt_single_range(0x10'0000, kSize, &output), 0);
      state.ctl &= ~bit(PT_CTL_TOPA);
    }
    state.output_base = output.base;
    state.output_mask_ptrs = output.mask_ptrs;
    pt_cursor cursor{};
    int turns = 0;
    ASSERT_EQ(pt_seq_start(&ops, &state), 0);
    for (int round = 0; round < 60; ++round) {
      machine.run(97);
      ASSERT_EQ(pt_seq_switch(&ops, &state, nullptr), 0);
      std::uint64_t position = pt_single_position(state.output_mask_ptrs);
      const pt_output now{state.output_base, state.output_mask_ptrs};
      if (topa) {
        ASSERT_EQ(pt_topa_position(&tables, &now, &position), 0);
      }
      const bool turned = position < cursor.position;
      turns += turned ? 1 : 0;
      pt_cursor_move(&cursor, kSize, position, turned ? 1 : 0);
      ASSERT_EQ(pt_seq_switch(&ops, nullptr, &state), 0);
    }
    EXPECT_GT(turns, 0);
    EXPECT_EQ(machine.memory.interrupts, topa ? turns : 0);
    EXPECT_EQ(machine.memory.trace.size(), kSize);  // all of it, and nothing else
    EXPECT_GT(cursor.total, kSize);
    EXPECT_EQ(cursor.position, cursor.total % kSize);
  }
}

TEST(Sequences, OfTwoContextsWriteTwoTraces) {
  Machine machine;
  const pt_ops ops = machine.ops();
  pt_state contexts[2] = {plain_state(), plain_state()};
  for (std::uint64_t i = 0; i < 2; ++i) {
    contexts[i].ctl &= ~bit(PT_CTL_TOPA);
    contexts[i].output_base = (i + 1) << 20;
    contexts[i].output_mask_ptrs = 0xf'ffff;
  }
  ASSERT_EQ(pt_seq_switch(&ops, nullptr, &contexts[0]), 0);
  for (unsigned round = 0; round < 10; ++round) {
    machine.run(50);
    ASSERT_EQ(pt_seq_switch(&ops, &contexts[round % 2], &contexts[1 - round % 2]), 0);
  }
  ASSERT_EQ(pt_seq_switch(&ops, &contexts[0], nullptr), 0);
  for (const pt_state& context : contexts) {
    std::vector<std::uint8_t> bytes;
    for (std::uint64_t i = 0; i < pt_single_position(context.output_mask_ptrs); ++i)
      bytes.push_back(machine.memory.trace.at(context.output_base + i));
    ptkit::packet::PacketDecoder decoder({bytes.data(), bytes.size()});
    ptkit::packet::Packet packet;
    int targets = 0;
    auto status = decoder.next(packet);
    for (; status == ptkit::base::Status::OK; status = decoder.next(packet))
      targets += packet.kind == ptkit::packet::PacketKind::TIP ? 1 : 0;
    EXPECT_EQ(status, ptkit::base::Status::END_OF_STREAM);
    EXPECT_EQ(targets, 250);
  }
}

// INT and STOP of the tables are seen by the unit where they were put.
TEST(Topa, StopsAtTheEndOfABufferThatIsNoRing) {
  Machine machine;
  const pt_ops ops = machine.ops();
  std::vector<std::uint64_t> entries(4);
  pt_table table{.entries = entries.data(), .physical = 0x70'0000, .begin = 0, .capacity = 4};
  const pt_region regions[] = {{0x10'0000, kPage}, {0x20'0000, kPage}};
  const pt_topa_options options{
      .interrupt_bytes = kPage, .ring = false, .one_entry = false, .largest_size = 15, .physical_bits = 46};
  pt_topa tables{};
  ASSERT_EQ(pt_topa_build(&tables, &table, 1, regions, 2, &options), 0);
  for (std::size_t i = 0; i < entries.size(); ++i) machine.memory.words[table.physical + 8 * i] = entries[i];
  pt_output output{};
  ASSERT_EQ(pt_topa_output(&tables, 0, &output), 0);
  pt_state state = plain_state();
  state.output_base = output.base;
  state.output_mask_ptrs = output.mask_ptrs;
  ASSERT_EQ(pt_seq_start(&ops, &state), 0);
  machine.run(8000);
  ASSERT_EQ(pt_seq_stop(&ops, &state), 0);
  EXPECT_NE(state.status & bit(PT_STATUS_STOPPED), 0U);
  EXPECT_EQ(machine.memory.interrupts, 2);
  const pt_output now{state.output_base, state.output_mask_ptrs};
  std::uint64_t position = 0;
  ASSERT_EQ(pt_topa_position(&tables, &now, &position), 0);
  EXPECT_EQ(position, 2 * kPage);
  EXPECT_EQ(machine.memory.trace.size(), 2 * kPage);
  EXPECT_EQ(pt_status_restarted(state.status) & bit(PT_STATUS_STOPPED), 0U);
}

}  // namespace
