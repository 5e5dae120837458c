// One process in the emulator, from its beginning (or an exec) to its end (or the next exec): its code, its
// log, and the threads whose lines are read.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "capture/arena.h"
#include "capture/block_bytes.h"
#include "capture/code_store.h"
#include "capture/conditions.h"
#include "capture/guest_code.h"
#include "capture/recording.h"

namespace ptkit::capture {

class GuestThread;

class GuestProcess {
 public:
  struct Origin {
    pid_t pid = 0;
    pid_t parent = 0;  // of a fork; 0: a new image, or the parent is not known
    std::uint64_t tsc = 0;
    std::string program;
  };
  // `parent`: the process whose first `inherited` blocks this one begins with, or null.
  GuestProcess(Recording& recording, Arena arena, Origin origin, GuestProcess* parent,
               std::uint32_t inherited);
  ~GuestProcess();

  [[nodiscard]] Arena& arena() noexcept { return arena_; }
  [[nodiscard]] Recording& recording() noexcept { return recording_; }
  [[nodiscard]] pid_t pid() const noexcept { return origin_.pid; }
  [[nodiscard]] pid_t parent() const noexcept { return origin_.parent; }
  [[nodiscard]] trace::SpaceId space() const noexcept { return space_; }
  [[nodiscard]] const std::string& program() const noexcept { return origin_.program; }
  [[nodiscard]] Conditions& conditions() noexcept { return conditions_; }

  // ---- by the workers

  struct Visit {
    unsigned worker = 0;
    std::uint64_t limit = 0;  // lines of each thread
    bool flush = false;       // what was read reaches the bundle
  };
  // Reads lines of each thread that nobody else reads. False if there was nothing to do.
  bool visit(const Visit& how);
  [[nodiscard]] bool done() const noexcept { return done_.load(std::memory_order_acquire); }

  // ---- by the thread that controls the recording

  enum class End : std::uint8_t { NONE, EXITED, REPLACED, CUT };
  // Nothing more comes after what is there. `status`: of the process, if it is known.
  void end(End how, std::uint64_t tsc, std::optional<int> status);

  // ---- by threads of the process

  [[nodiscard]] const GuestCode& code() const noexcept { return code_; }
  // Reads the log up to this block, if it was not. False if it is not there.
  [[nodiscard]] bool require(std::uint32_t block);
  // Code that came so far goes to the bundle: before the trace that it is needed for.
  void write_code();
  [[nodiscard]] bool inherits() const noexcept { return inherited_ != 0; }
  // A block was executed: one that was inherited is part of the process's own code from then on.
  void executed(std::span<const std::uint32_t> blocks);
  // What the process wrote makes no sense: its recording ends.
  void drop(const std::string& why);
  [[nodiscard]] bool dropped() const noexcept { return dropped_.load(std::memory_order_relaxed); }
  void exiting(int status) noexcept { exit_mark_ = status; }
  void note(trace::SidebandKind kind, pid_t tid, std::uint64_t tsc, std::int64_t value, std::string text);
  // A thread is called so from a time on.
  void name_thread(pid_t tid, std::string name, std::uint64_t tsc);
  // The stream of a thread, with its name.
  [[nodiscard]] std::uint32_t begin_stream(pid_t tid);
  void end_stream(pid_t tid, std::uint64_t tsc);

 private:
  struct Seat {  // of a slot
    std::atomic_flag busy;
    unsigned worker = 0;
    bool final = false;  // nothing more comes
    std::unique_ptr<GuestThread> thread;
  };

  struct Named {  // a thread
    std::string name;
    std::uint64_t since = 0;
    std::optional<std::uint32_t> stream;
    std::optional<std::uint64_t> end;  // of the stream, as far as it is known
  };

  struct FileMapping {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t offset = 0;
    std::string path;
  };

  void begin();
  [[nodiscard]] trace::Stream stream_of(pid_t tid, const Named& named) const;
  void inherit_mappings(GuestProcess& parent);
  void add_mapping(FileMapping mapping, std::uint64_t tsc);
  bool visit(Seat& seat, std::uint32_t slot, const Visit& how);
  void leave(Seat& seat, std::uint64_t tsc);
  void finish();
  void warn_of_losses();
  void read_log_record(base::Bytes record);
  void on_block(base::Bytes record);
  void on_map(base::Bytes record);
  void on_note(base::Bytes record);

  Recording& recording_;
  Arena arena_;
  Origin origin_;
  trace::SpaceId space_;
  std::mutex log_mutex_;  // guards adding to what follows, and the log
  GuestCode code_;
  std::shared_ptr<BlockBytes> bytes_;
  CodeStore store_;
  std::vector<FileMapping> mappings_;
  std::uint32_t inherited_;
  std::vector<std::atomic<bool>> inherited_seen_;
  Conditions conditions_;
  std::mutex names_mutex_;  // guards names_
  std::map<pid_t, Named> names_;
  std::vector<Seat> seats_;
  std::atomic<std::uint32_t> used_seats_{0};
  std::atomic<End> end_{End::NONE};
  std::uint64_t end_tsc_ = 0;  // set before end_
  std::optional<int> status_;  // likewise
  std::atomic<int> exit_mark_{-1};
  std::atomic<bool> dropped_{false};
  std::atomic_flag finishing_;
  std::atomic<bool> done_{false};
};

}  // namespace ptkit::capture
