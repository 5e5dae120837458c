// Tracks processes, threads and mappings by the kernel's records and /proc. Writes address spaces, switches,
// code and sideband records to the bundle.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/interval_map.h"
#include "capture/linux/output/bundle_output.h"
#include "capture/linux/process/process.h"
#include "capture/linux/sideband/jit_dumps.h"
#include "capture/linux/sideband/jit_names.h"
#include "capture/linux/sideband/system_record.h"
#include "processes/switch_alignment.h"

namespace ptkit::capture {

class SystemProcesses {
 public:
  // `user`: user code is traced, so code of mappings is saved. `by_offset`: switches have stream offsets.
  // `max_skew`: the skew, in ticks, that the time of every switch may have.
  SystemProcesses(BundleOutput& output, bool user, bool by_offset, std::uint64_t max_skew = 0)
      : output_(output), user_(user), by_offset_(by_offset), max_skew_(max_skew) {}

  // `on_progress` is called repeatedly while code is saved, which takes long.
  void while_saving(std::function<void()> on_progress) { on_progress_ = std::move(on_progress); }

  // From then on EXEC, MMAP and COMM records count only for processes that other records have named.
  void ignore_others() { ignores_others_ = true; }

  // Adds the recorded process from /proc.
  void begin(std::int64_t pid, std::uint64_t tsc);
  // Saves the code of a tracked process.
  void save_code(std::int64_t pid);
  // Adds all processes in /proc, so that a process is known when it is first switched in.
  void find_all(std::uint64_t tsc);
  [[nodiscard]] trace::SpaceId space_of(std::int64_t pid) const;
  // By space: whether it belongs to a program. Other spaces belong to kernel threads.
  [[nodiscard]] const std::vector<bool>& programs() const noexcept { return programs_; }
  [[nodiscard]] bool has_cr3() const noexcept { return cr3_known_; }
  // See processes::SwitchAlignment.
  [[nodiscard]] const processes::SwitchSkews& switch_skews() const noexcept { return skews_; }

  // Applies a record of the stream's CPU. Records are nearly in the order of time.
  void take(const SystemRecord& record, std::uint32_t stream);
  // The switches of a stream since the last call.
  [[nodiscard]] std::vector<trace::Switch> take_switches(std::uint32_t stream);

  // Whether the process or one of its descendants is alive.
  [[nodiscard]] bool alive(std::int64_t pid) const;
  // Finds processes that have exited without an EXIT record (kill(2): ESRCH).
  void forget_ended();
  // Looks at what processes have written of their JIT code.
  void look_at_jit_names(std::uint64_t tsc) { jit_names_.look(tsc); }
  // At the end of a recording: saves JIT code from jit-PID.dump files, and names from perf-PID.map files.
  void save_jit_code(std::uint64_t tsc);
  [[nodiscard]] std::vector<trace::Warning> warnings() const;

 private:
  // An executable mapping. Its file is read when the process runs: most processes of a machine do not run.
  struct CodeMapping {
    std::uint64_t tsc = 0;
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    std::uint64_t file_offset = 0;
    std::string path;
    std::string build_id;      // empty: not recorded
    std::uint64_t device = 0;  // as in Mapping
    std::uint64_t inode = 0;
    std::uint64_t tsc_from = trace::kTscMin;  // its code is valid from then on

    // Equal at any time: the same addresses, file and offset.
    [[nodiscard]] bool operator==(const CodeMapping& other) const {
      return address == other.address && bytes == other.bytes && file_offset == other.file_offset &&
             path == other.path;
    }
    [[nodiscard]] Mapping mapping() const {
      return {.begin = address,
              .end = address + bytes,
              .offset = file_offset,
              .executable = true,
              .path = path,
              .device = device,
              .inode = inode,
              .build_id = build_id};
    }
  };
  // The mappings of one space. JIT compilers map memory very often, so a lookup must not scan all mappings.
  class CodeMappings {
   public:
    // By number, in the order of add().
    [[nodiscard]] const std::map<std::uint64_t, CodeMapping>& all() const noexcept { return all_; }
    // The newest mapping that overlaps this one; nullptr: none.
    [[nodiscard]] const CodeMapping* newest_over(const CodeMapping& mapping) const;
    void add(CodeMapping mapping);
    // Erases mappings that newer ones cover entirely. Otherwise their number would grow without limit.
    void erase_hidden();

   private:
    std::map<std::uint64_t, CodeMapping> all_;
    std::uint64_t next_ = 0;
    std::size_t size_after_erase_ = 0;                    // after the last erase_hidden()
    base::IntervalMap<std::uint64_t> newest_by_address_;  // to numbers
  };
  struct Process {
    trace::SpaceId space = trace::kAnySpace;
    std::uint64_t kernel_cr3 = 0;  // 0: not known
    std::uint64_t user_cr3 = 0;
    CodeMappings mappings;
    // Running threads: TSC of their FORK, or of exec().
    std::map<std::int64_t, std::uint64_t> threads;
    std::int64_t parent = trace::kNoId;
    std::size_t children = 0;     // tracked ones
    bool ended = false;           // all threads have exited
    bool erasable = false;        // erased when its last child is erased
    bool saved = false;           // its mappings are in the bundle
    bool exec_path_known = true;  // an EXEC record with the path was written
    bool loading = false;         // after EXEC, before PROGRAM
    bool has_new_tables = false;  // a SWITCH record had other page tables; its EXEC may follow
  };

  Process& process_of(std::int64_t pid, std::uint64_t tsc);
  [[nodiscard]] bool ignores(const SystemRecord& record) const;
  void read_maps_of(std::int64_t pid, Process& process, std::uint64_t tsc);
  void add_mapping(Process& process, const SystemRecord& record);
  void write_mapping(std::int64_t pid, const CodeMapping& mapping, std::int32_t file);
  void save(std::int64_t pid, Process& process);
  void save(std::int64_t pid, const Process& process, const CodeMapping& mapping);
  [[nodiscard]] BundleOutput::File file_of(std::int64_t pid, const CodeMapping& mapping);
  void save_bytes(std::int64_t pid, const CodeMapping& mapping, const BundleOutput::File& file,
                  const trace::CodeRegion& whole);
  // Returns true if the bytes are valid for all processes with this file.
  [[nodiscard]] bool read_bytes(std::int64_t pid, const CodeMapping& mapping, const BundleOutput::File& file,
                                const CodeReader::Take& take);
  void new_space(std::int64_t pid, Process& process);
  void set_cr3(const SystemRecord& record, Process& process);
  void on_switch(const SystemRecord& record, std::uint32_t stream);
  void add_switch(std::uint32_t stream, const trace::Switch& to);
  void on_fork(const SystemRecord& record);
  void on_exec(const SystemRecord& record, std::uint32_t stream);
  void on_program(const SystemRecord& record, std::uint32_t stream);
  void begin_program(const SystemRecord& record, Process& process, std::uint32_t stream);
  void on_space(const SystemRecord& record);
  void on_mmap(const SystemRecord& record);
  void on_exit(const SystemRecord& record);
  void end(std::int64_t pid, Process& process, std::uint64_t tsc);
  void erase_process(std::int64_t pid);
  void mark_as_program(trace::SpaceId space);
  void write_record(trace::SidebandKind kind, const SystemRecord& record, std::int64_t value,
                    std::string text);

  BundleOutput& output_;
  bool user_;
  bool by_offset_;
  bool ignores_others_ = false;
  std::uint64_t max_skew_;
  processes::SwitchSkews skews_;
  bool cr3_known_ = false;  // SWITCH records have CR3
  std::vector<bool> programs_;
  std::function<void()> on_progress_;
  std::map<std::int64_t, Process> processes_;
  std::deque<std::int64_t> ended_pids_;                           // exited processes, oldest first
  std::map<std::uint32_t, std::vector<trace::Switch>> switches_;  // by stream
  std::map<std::uint32_t, trace::Switch> last_switch_;            // by stream, with `by_offset_`
  std::map<std::uint32_t, trace::SpaceId> last_space_;            // by stream
  std::set<std::tuple<std::int32_t, std::uint64_t, std::uint64_t>> saved_ranges_;  // file, offset, size
  std::set<std::string> replaced_files_;              // paths that name another file now
  std::map<trace::SpaceId, std::string> jit_spaces_;  // spaces with anonymous code: names
  JitDumps dumps_;
  JitNames jit_names_{JitNames::Kinds::MAPS};
};

}  // namespace ptkit::capture
