// One process in the emulator, from its start (or an exec()) to its end (or the next exec()): its code, its
// log, and its threads with their lines (capture/linux/emulator/plugin/channel.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "capture/linux/emulator/code_store.h"
#include "capture/linux/emulator/emulator_recording.h"
#include "capture/linux/emulator/filter_triggers.h"
#include "capture/linux/emulator/shared_memory.h"
#include "capture/linux/encode/guest_code.h"

namespace ptkit::capture {

class GuestThread;

class GuestProcess {
 public:
  struct Origin {
    pid_t pid = 0;
    pid_t parent = 0;  // the parent after fork(); 0: a new image, or the parent is not known
    std::uint64_t tsc = 0;
    std::string program;
  };
  // After fork(), `parent` is the parent process, and the child begins with the parent's first `inherited`
  // blocks. `parent` is null for a new image, or if the parent is not known.
  GuestProcess(EmulatorRecording& recording, SharedMemory shared, Origin origin, GuestProcess* parent,
               std::uint32_t inherited);
  ~GuestProcess();

  [[nodiscard]] SharedMemory& shared() noexcept { return shared_; }
  [[nodiscard]] EmulatorRecording& recording() noexcept { return recording_; }
  [[nodiscard]] pid_t pid() const noexcept { return origin_.pid; }
  [[nodiscard]] pid_t parent() const noexcept { return origin_.parent; }
  [[nodiscard]] trace::SpaceId space() const noexcept { return space_; }
  [[nodiscard]] const std::string& program() const noexcept { return origin_.program; }
  [[nodiscard]] FilterTriggers& filter_triggers() noexcept { return filter_triggers_; }

  // ---- by the workers

  struct ReadPass {
    unsigned worker = 0;
    std::uint64_t limit = 0;  // bytes of lines to read of each thread
    bool flush = false;       // write all packets to the bundle
  };
  // Reads lines of each thread that no other worker reads now. Returns false if there were none.
  bool read(const ReadPass& pass);
  [[nodiscard]] bool done() const noexcept { return done_.load(std::memory_order_acquire); }

  // ---- by the thread that controls the recording

  enum class End : std::uint8_t { NONE, EXITED, REPLACED, CUT };
  // The process writes no more lines and records. `status`: its exit status, if known.
  void end(End reason, std::uint64_t tsc, std::optional<int> status);

  // ---- by threads of the process

  [[nodiscard]] const GuestCode& code() const noexcept { return code_; }
  // Reads the log up to this block. Returns false if the log does not have the block.
  [[nodiscard]] bool read_log_to(std::uint32_t block);
  // Writes new code to the bundle. The trace that needs the code must come later.
  void write_code();
  [[nodiscard]] bool has_inherited_blocks() const noexcept { return inherited_ != 0; }
  // Blocks were executed: inherited blocks become part of the process's own code.
  void executed(std::span<const std::uint32_t> blocks);
  // The process wrote invalid data: its recording ends.
  void drop(const std::string& why);
  [[nodiscard]] bool dropped() const noexcept { return dropped_.load(std::memory_order_relaxed); }
  void set_exit_status(int status) noexcept { exit_mark_ = status; }
  void note(trace::SidebandKind kind, pid_t tid, std::uint64_t tsc, std::int64_t value, std::string text);
  // Names a thread from `tsc` on.
  void name_thread(pid_t tid, std::string name, std::uint64_t tsc);
  // Adds the stream of a thread, with its name.
  [[nodiscard]] std::uint32_t begin_stream(pid_t tid);
  void end_stream(pid_t tid, std::uint64_t tsc);

 private:
  struct ThreadSlot {  // one per SlotHeader
    std::atomic_flag busy;
    unsigned worker = 0;
    bool final = false;  // all lines were read
    std::unique_ptr<GuestThread> thread;
  };

  struct ThreadName {
    std::string name;
    std::uint64_t since = 0;
    std::optional<std::uint32_t> stream;
    std::optional<std::uint64_t> end;  // the stream's end, if known
  };

  struct FileMapping {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t offset = 0;
    std::string path;
  };

  void begin();
  [[nodiscard]] trace::Stream stream_of(pid_t tid, const ThreadName& thread_name) const;
  void inherit_mappings(GuestProcess& parent);
  void add_mapping(FileMapping mapping, std::uint64_t tsc);
  bool read(ThreadSlot& thread_slot, std::uint32_t slot, const ReadPass& pass);
  void finish_thread(ThreadSlot& thread_slot, std::uint64_t tsc);
  void finish();
  void warn_of_losses();
  void read_log_record(base::Bytes record);
  void on_block(base::Bytes record);
  void on_map(base::Bytes record);
  void on_note(base::Bytes record);

  EmulatorRecording& recording_;
  SharedMemory shared_;
  Origin origin_;
  trace::SpaceId space_;
  std::mutex log_mutex_;  // guards the log and writes to the members that follow
  GuestCode code_;
  std::shared_ptr<BlockBytes> bytes_;
  CodeStore store_;
  std::vector<FileMapping> mappings_;
  std::vector<JitExecution> jit_executions_;
  std::uint32_t inherited_;
  std::vector<std::atomic<bool>> inherited_seen_;
  FilterTriggers filter_triggers_;
  std::mutex names_mutex_;  // guards names_
  std::map<pid_t, ThreadName> names_;
  std::vector<ThreadSlot> slots_;
  std::atomic<std::uint32_t> used_slots_{0};
  std::atomic<End> end_{End::NONE};
  std::uint64_t end_tsc_ = 0;  // set before end_
  std::optional<int> status_;  // set before end_
  std::atomic<int> exit_mark_{-1};
  std::atomic<bool> dropped_{false};
  std::atomic_flag finishing_;
  std::atomic<bool> done_{false};
};

}  // namespace ptkit::capture
