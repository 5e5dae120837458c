// Counts runs by file. Runs are first counted by their addresses, and looked up in files many at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "code/image/image.h"
#include "code/insn/insn.h"
#include "code/symbol/load_addresses.h"
#include "tables/columns/ip_set.h"
#include "tables/feedback/run.h"

namespace ptkit::tables::feedback {

class FileRuns {
 public:
  // Code of some streams. All must outlive this. `ips`: runs that meet one of these addresses; empty: all.
  FileRuns(const code::image::Image& image, const code::symbol::LoadAddresses& loads,
           const columns::IpSet& ips);

  void add(const Run& run, const Executions& executions);
  // Instructions of which nothing else is known.
  void add_unknown(std::uint64_t instructions) noexcept {
    totals_.instructions += instructions;
    totals_.unknown_instructions += instructions;
  }
  void add_losses(std::uint64_t errors, std::uint64_t gaps) noexcept {
    totals_.errors += errors;
    totals_.gaps += gaps;
  }
  // Looks up all runs. Views may be gone afterwards.
  void flush();
  void add_all(FileRuns&& others);
  // After flush(): sorted by files and addresses.
  void sort();

  [[nodiscard]] const CountTable<FileRun>& runs() const noexcept { return files_; }
  [[nodiscard]] const RunTotals& totals() const noexcept { return totals_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return raw_.bytes() + files_.bytes(); }

 private:
  struct Location {
    std::int32_t file = -1;
    std::uint64_t rva = 0;
  };
  [[nodiscard]] Location locate(const code::image::CodeView* view, std::uint64_t ip) const;
  [[nodiscard]] code::insn::ExecMode mode_of(std::int32_t file) const noexcept;
  [[nodiscard]] bool find_last(Run& run, std::int32_t file) const;
  void look_up(Run run, const Executions& executions);

  const code::image::Image& image_;
  const code::symbol::LoadAddresses& loads_;
  const columns::IpSet& ips_;
  std::vector<std::int32_t> first_;  // for each file the first one with the same build-id, or the same path
  CountTable<Run> raw_;
  CountTable<FileRun> files_;
  RunTotals totals_;
};

}  // namespace ptkit::tables::feedback
