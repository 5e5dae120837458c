// Who runs and what is mapped, as the kernel's records and /proc tell it: address spaces, switches, code and
// records of a bundle.
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
#include "capture/bundle_output.h"
#include "capture/jit_dumps.h"
#include "capture/system_record.h"
#include "capture/tracee.h"
#include "formats/switch_places.h"

namespace ptkit::capture {

class SystemProcesses {
 public:
  // `user`: user code is traced, so that its bytes are wanted. `by_place`: switches have places. `usual`: the
  // ticks by which times of switches may be wrong anyway.
  SystemProcesses(BundleOutput& output, bool user, bool by_place, std::uint64_t usual = 0)
      : output_(output), user_(user), by_place_(by_place), usual_(usual) {}

  // Called again and again while code is saved, which takes a while.
  void while_saving(std::function<void()> often) { often_ = std::move(often); }

  // The process that is recorded, as /proc shows it.
  void begin(std::int64_t pid, std::uint64_t tsc);
  void save_code(std::int64_t pid);  // of a process that is known
  // Every process that can be seen: what has its code is known when it first runs.
  void find_all(std::uint64_t tsc);
  [[nodiscard]] trace::SpaceId space_of(std::int64_t pid) const;
  // By space: those of programs; others are of the kernel's threads.
  [[nodiscard]] const std::vector<bool>& programs() const noexcept { return programs_; }
  [[nodiscard]] bool know_tables() const noexcept { return tables_known_; }
  // As formats::SwitchPlacing has them.
  [[nodiscard]] const formats::SwitchWidths& switch_widths() const noexcept { return widths_; }

  // A record of the stream's processor; records come nearly by time.
  void take(const SystemRecord& record, std::uint32_t stream);
  // What a stream was not told yet.
  [[nodiscard]] std::vector<trace::Switch> take_switches(std::uint32_t stream);

  [[nodiscard]] bool alive(std::int64_t pid) const;  // the process, or one that it has begun
  void forget_ended();                               // those whose end nobody told, as the system sees it
  // Recording has ended: code that programs made, as far as they have told it.
  void save_made_code();
  [[nodiscard]] std::vector<std::string> warnings() const;

 private:
  // Executable memory. Files are looked into when the process runs: a machine has many that do not.
  struct Part {
    std::uint64_t tsc = 0;
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    std::uint64_t file_offset = 0;
    std::string path;
    std::string build_id;      // empty: not recorded
    std::uint64_t device = 0;  // as in Mapping
    std::uint64_t inode = 0;
    std::uint64_t tsc_from = trace::kTscMin;  // since when its code is valid

    // The same of the same file, whenever.
    [[nodiscard]] bool operator==(const Part& other) const {
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
  // Of one space. Programs that make code map memory again and again: none is looked for among all others.
  class Parts {
   public:
    // By number, in the order in which they came.
    [[nodiscard]] const std::map<std::uint64_t, Part>& all() const noexcept { return all_; }
    // The one that came last of those that lie where this one does; nullptr: none does.
    [[nodiscard]] const Part* last_over(const Part& part) const;
    void add(Part part);
    // Those that later ones lie over as a whole, or where some come and go there would be ever more.
    void forget_hidden();

   private:
    std::map<std::uint64_t, Part> all_;
    std::uint64_t next_ = 0;
    std::size_t at_last_look_ = 0;             // how many there were
    base::IntervalMap<std::uint64_t> places_;  // numbers
  };
  struct Process {
    trace::SpaceId space = trace::kAnySpace;
    std::uint64_t kernel_cr3 = 0;  // 0: not known
    std::uint64_t user_cr3 = 0;
    Parts parts;
    // That have not ended, as far as it is known, and when they began or executed this program.
    std::map<std::int64_t, std::uint64_t> threads;
    std::int64_t parent = trace::kNoId;
    std::size_t children = 0;  // that are known
    bool ended = false;        // all of its threads have, as far as it is known
    bool due = false;          // to be forgotten when it has no children any more
    bool saved = false;        // its parts are in the bundle
    bool named = true;         // the path of its last exec() was told
  };

  Process& known(std::int64_t pid, std::uint64_t tsc);
  void read_maps_of(std::int64_t pid, Process& process, std::uint64_t tsc);
  void add_part(Process& process, const SystemRecord& mapping);
  void note_mapping(std::int64_t pid, const Part& part, std::int32_t file);
  void save(std::int64_t pid, Process& process);
  void save(std::int64_t pid, const Process& process, const Part& part);
  [[nodiscard]] BundleOutput::File file_of(std::int64_t pid, const Part& part);
  void save_bytes(std::int64_t pid, const Part& part, const BundleOutput::File& file,
                  const trace::CodeRegion& whole);
  // True: they are in the bundle for other processes, too.
  [[nodiscard]] bool read_bytes(std::int64_t pid, const Part& part, const BundleOutput::File& file,
                                const CodeReader::Take& take);
  void new_space(std::int64_t pid, Process& process);
  void set_tables(const SystemRecord& record, Process& process);
  void on_switch(const SystemRecord& record, std::uint32_t stream);
  void add_switch(std::uint32_t stream, const trace::Switch& to);
  void on_fork(const SystemRecord& record);
  void on_exec(const SystemRecord& record, std::uint32_t stream);
  void on_map(const SystemRecord& record);
  void on_exit(const SystemRecord& record);
  void end(std::int64_t pid, Process& process);
  void forget(std::int64_t pid);
  void is_program(trace::SpaceId space);
  void note(trace::SidebandKind kind, const SystemRecord& record, std::int64_t value, std::string text);

  BundleOutput& output_;
  bool user_;
  bool by_place_;
  std::uint64_t usual_;
  formats::SwitchWidths widths_;
  bool tables_known_ = false;  // records of switches tell them
  std::vector<bool> programs_;
  std::function<void()> often_;
  std::map<std::int64_t, Process> processes_;
  std::deque<std::int64_t> ended_;                                          // of them, the first one first
  std::map<std::uint32_t, std::vector<trace::Switch>> switches_;            // by stream
  std::map<std::uint32_t, trace::Switch> last_;                             // by stream, where by place
  std::map<std::uint32_t, trace::SpaceId> last_space_;                      // by stream
  std::set<std::tuple<std::int32_t, std::uint64_t, std::uint64_t>> saved_;  // parts of files: their bytes
  std::set<std::string> replaced_;                                          // files that are others by now
  std::map<trace::SpaceId, std::string> made_code_;  // that execute memory which shows no file: their names
  JitDumps dumps_;
};

}  // namespace ptkit::capture
