// Branch records (BTS) of one buffer of intel_bts, and the threads of the records by the buffer's AUX
// records.
#pragma once

#include <optional>
#include <vector>

#include "capture/linux/perf/records.h"
#include "capture/linux/perf/running_thread.h"
#include "trace/branch_records.h"

namespace ptkit::capture {

class BtsBuffer {
 public:
  // `per_thread`: the data of an AUX record belongs to the thread that the record names. Otherwise it belongs
  // to the only thread that ran since the AUX record before. `kernel`: kernel branches are recorded, too.
  // `ring_bytes`: the bytes of the buffer that the kernel uses.
  BtsBuffer(bool per_thread, bool kernel, std::uint64_t ring_bytes)
      : per_thread_(per_thread), kernel_(kernel), ring_bytes_(ring_bytes) {}

  // How many bytes of a buffer the kernel uses: whole records.
  [[nodiscard]] static std::uint64_t used_bytes(std::uint64_t bytes) noexcept;
  // Whether the kernel may skip so many bytes between the data of two AUX records.
  [[nodiscard]] static bool is_padding(std::uint64_t bytes) noexcept;

  void ran(const formats::perf::Running& one) { running_.take(one); }
  // The next branch does not continue at the target of the last one.
  void interrupt() noexcept { new_path_ = true; }

  // The branches of one AUX record.
  [[nodiscard]] BranchChunk chunk(const AuxRecord& aux, base::Bytes bytes);

  // ---- overwrite mode: AUX records give the write position, not the number of laps

  void add_ring_record(const AuxRecord& aux);
  // exec() of a process: branches before it do not belong to the new program.
  void forget(std::int32_t pid, std::uint64_t before_tsc);
  // The new branches of a snapshot, oldest first. Data from the position of the last AUX record but one on
  // belongs to the thread of the last AUX record. Earlier data belongs to the process and thread that all AUX
  // records have in common, if any.
  [[nodiscard]] std::vector<BranchChunk> chunks_of_snapshot(base::Bytes fresh);

 private:
  [[nodiscard]] BranchChunk chunk_of_owner(const AuxRecord& aux);
  [[nodiscard]] std::uint64_t bytes_of_last() const;
  void fill(BranchChunk& chunk, base::Bytes bytes);

  bool per_thread_;
  bool kernel_;
  std::uint64_t ring_bytes_;
  bool new_path_ = true;  // the next branch follows an interruption
  trace::PredictionInference predictions_;
  RunningThread running_;
  // Overwrite mode: the last AUX record since a snapshot, and the process and thread that all AUX records
  // since then have in common, with the time of the first one.
  std::optional<AuxRecord> last_;
  AuxRecord common_owner_;
  // Write positions of the last two AUX records, across snapshots.
  std::optional<std::uint64_t> position_;
  std::optional<std::uint64_t> previous_position_;
};

}  // namespace ptkit::capture
