// What intel_bts stored in one buffer, as the kernel's notes about it tell: branch records, and whose they
// are.
#pragma once

#include <optional>
#include <vector>

#include "capture/perf_ran.h"
#include "capture/perf_records.h"

namespace ptkit::capture {

class PerfStore {
 public:
  // `of_threads`: what a note is about belongs to the thread that it names; else to whoever ran since the
  // note before. `kernel`: the kernel's branches are stored, too. `ring_bytes`: what Linux uses of the
  // buffer.
  PerfStore(bool of_threads, bool kernel, std::uint64_t ring_bytes)
      : of_threads_(of_threads), kernel_(kernel), ring_bytes_(ring_bytes) {}

  // How much of a ring Linux uses: whole records.
  [[nodiscard]] static std::uint64_t used_bytes(std::uint64_t bytes) noexcept;
  // So little between two notes is what Linux leaves free behind itself.
  [[nodiscard]] static bool is_padding(std::uint64_t bytes) noexcept;

  void ran(const formats::perf::Running& one) { ran_.take(one); }
  // What is stored from here on does not go on where the last record led.
  void interrupt() noexcept { first_ = true; }

  // What a note is about.
  [[nodiscard]] BranchPiece piece(const AuxNote& note, base::Bytes bytes);

  // ---- of a ring: its notes tell where it was written to, not how often it went round meanwhile

  void keep(const AuxNote& note);
  // A process executes another program: what it stored before is not that one's.
  void forget(std::int32_t pid, std::uint64_t before_tsc);
  // What the ring has that is new, the oldest first. Only what lies behind the place of the note before the
  // last one is the last one's for sure; the rest is of whom all notes name.
  [[nodiscard]] std::vector<BranchPiece> pieces(base::Bytes fresh);

 private:
  [[nodiscard]] BranchPiece owned(const AuxNote& note);
  [[nodiscard]] std::uint64_t bytes_of_last() const;
  void fill(BranchPiece& piece, base::Bytes bytes);

  bool of_threads_;
  bool kernel_;
  std::uint64_t ring_bytes_;
  bool first_ = true;
  bool predicts_ = false;  // the processor says what it predicted
  PerfRan ran_;
  // Of a ring's notes, which may be many before somebody looks: the last one, and whose all of them are,
  // since when.
  std::optional<AuxNote> last_;
  AuxNote common_;
  std::optional<std::uint64_t> place_;  // of the last note ever, and of the one before it
  std::optional<std::uint64_t> place_before_;
};

}  // namespace ptkit::capture
