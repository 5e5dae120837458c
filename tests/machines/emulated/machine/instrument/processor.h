// One processor of the machine: what Bochs' hooks say goes to its trace unit and to the log of the truth.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "bochs_headers.h"
#include "branch_store.h"
#include "counters.h"
#include "faults.h"
#include "ptmodel/trace_unit.h"
#include "truth_log.h"

namespace ptkit::emulated {

class Processor final : public ptmodel::Platform {
 public:
  Processor(BX_CPU_C& cpu, TruthLog& log);

  // --- hooks
  void reset(bool warm);
  void before(const bxInstruction_c& instruction);
  void after(const bxInstruction_c& instruction);
  void conditional(bool taken);
  void near_branch(unsigned what, std::uint64_t to);
  void far_branch(unsigned what, std::uint64_t from, std::uint64_t to);
  void interrupt(std::uint64_t from);  // or exception: delivery begins
  void control_register(unsigned what);

  // --- registers: 1 done, 0 #GP, -1 not ours
  int read_msr(unsigned index, Bit64u& value);
  int write_msr(unsigned index, Bit64u value);

  [[nodiscard]] Counters& counters() { return counters_; }
  [[nodiscard]] bool watching() const { return tracing() || log_.on(false); }
  // The instruction that began another part is in none.
  void close_log() {
    runs_.close();
    executing_ = false;
  }

  // --- Platform
  std::uint64_t read_physical(std::uint64_t address) override;
  void write_physical(std::uint64_t address, base::Bytes bytes) override;
  void topa_pmi() override;

  // From the next time on that TraceEn is set; the unit's registers stay.
  void plant(Fault fault);

  static ptmodel::Capabilities capabilities();
  static trace_unit::generator::GeneratorConfig packet_config();

 private:
  [[nodiscard]] bool tracing() const { return unit_->trace_enabled() || branches_.on(); }
  [[nodiscard]] ptmodel::ProcessorState state() const;
  [[nodiscard]] Context context() const;
  ptmodel::TraceUnit& unit();  // with the time set
  void settle(std::uint64_t target);
  void store_branch(std::uint64_t from, std::uint64_t to);
  [[nodiscard]] const std::uint8_t* host_page(std::uint64_t address);
  [[nodiscard]] std::uint64_t* plain_register(unsigned index);
  int write_register(unsigned index, std::uint64_t value);
  [[nodiscard]] std::unique_ptr<ptmodel::TraceUnit> make_unit();
  [[nodiscard]] std::uint64_t range_error(unsigned index) const;
  [[nodiscard]] bool ends_region(std::size_t bytes);
  [[nodiscard]] bool spoils_return();

  BX_CPU_C& cpu_;
  TruthLog& log_;
  RunCollector runs_;
  Fault fault_ = Fault::NONE;  // before the unit, which is made by it
  std::unique_ptr<ptmodel::TraceUnit> unit_;
  BranchStore branches_;
  Counters counters_;
  std::uint64_t time_ = 0;
  bool executing_ = false;  // before() was told, after() not yet
  std::uint64_t ip_ = 0;    // of the instruction
  std::uint64_t next_ip_ = 0;
  Context context_;
  const std::uint8_t* page_ = nullptr;       // that it begins in, as the host sees it
  const std::uint8_t* next_page_ = nullptr;  // that it ends in, if another
  bool delivering_ = false;                  // an interrupt's target is not known yet
  std::uint64_t delivered_from_ = 0;
  std::unordered_map<unsigned, std::uint64_t> plain_;  // registers that hold what is written
  unsigned returns_ = 0;                               // that were compressed
};

}  // namespace ptkit::emulated
