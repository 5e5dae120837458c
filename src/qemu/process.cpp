#include "qemu/process.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

namespace ptkit::qemu {

constinit Process process{};

namespace {

constexpr long kWaitNs = 100'000'000;
constexpr int kGoneWaits = 20;      // of kWaitNs without a heartbeat: gone if its process is gone
constexpr int kGivenUpWaits = 300;  // ... or silent for that long
constexpr time_t kAnswerSeconds = 10;

int connect_to_recorder() {
  const int file = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (file < 0) return -1;
  const timeval limit{kAnswerSeconds, 0};
  setsockopt(file, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(file, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const size_t size = strlen(process.settings.socket) + 1;
  if (size <= sizeof address.sun_path) {
    memcpy(address.sun_path, process.settings.socket, size);
    if (connect(file, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return file;
  }
  close(file);
  return -1;
}

bool send_hello(int file) {
  Hello hello{};
  hello.magic = kChannelMagic;
  hello.version = kChannelVersion;
  hello.pid = process.pid;
  hello.parent = process.forked ? process.parent : 0;
  hello.first_block = process.forked ? process.next_block : 0;
  hello.parent_arena = process.forked ? process.arena_number : 0;
  hello.tsc = __rdtsc();
  static_assert(sizeof hello.program == sizeof process.settings.program);
  memcpy(hello.program, process.settings.program, sizeof hello.program);
  const auto* at = reinterpret_cast<const char*>(&hello);
  size_t left = sizeof hello;
  while (left > 0) {
    const ssize_t sent = send(file, at, left, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    left -= static_cast<size_t>(sent);
  }
  return true;
}

// The welcome, and the memory file that comes with it (-1: none).
bool receive_welcome(int file, Welcome& welcome, int& memory) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  iovec part{&welcome, sizeof welcome};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t got;
  do {
    got = recvmsg(file, &message, MSG_CMSG_CLOEXEC | MSG_WAITALL);
  } while (got < 0 && errno == EINTR);
  memory = -1;
  for (cmsghdr* at = CMSG_FIRSTHDR(&message); at != nullptr; at = CMSG_NXTHDR(&message, at)) {
    if (at->cmsg_level == SOL_SOCKET && at->cmsg_type == SCM_RIGHTS)
      memcpy(&memory, CMSG_DATA(at), sizeof memory);
  }
  return got == static_cast<ssize_t>(sizeof welcome) && welcome.magic == kChannelMagic &&
         welcome.accepted != 0 && memory >= 0;
}

ArenaHeader* exchange(int file, Welcome& welcome) {
  int memory = -1;
  void* arena = MAP_FAILED;
  if (send_hello(file) && receive_welcome(file, welcome, memory))
    arena = mmap(nullptr, welcome.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  if (memory >= 0) close(memory);
  return arena == MAP_FAILED ? nullptr : static_cast<ArenaHeader*>(arena);
}

}  // namespace

bool attach_process() {
  if (process.refused) return false;
  if (process.arena != nullptr && !process.forked) return recording();
  ArenaHeader* const parents = process.forked ? process.arena : nullptr;
  const size_t parents_bytes = process.arena_bytes;
  process.arena = nullptr;
  process.pid = getpid();
  Welcome welcome{};
  const int file = connect_to_recorder();
  if (file >= 0) {
    process.arena = exchange(file, welcome);
    close(file);
  }
  if (process.arena == nullptr) {
    process.refused = true;
    if (parents != nullptr && file < 0) __atomic_fetch_add(&parents->lost_children, 1, __ATOMIC_RELAXED);
  } else {
    process.arena_bytes = welcome.bytes;
    process.arena_number = welcome.arena;
    process.arena->first_block = process.forked ? process.next_block : 0;
    __atomic_store_n(&process.arena->attached, 1, __ATOMIC_RELEASE);
  }
  process.forked = false;
  if (parents != nullptr) munmap(parents, parents_bytes);
  return process.arena != nullptr;
}

void forget_process() {
  process.parent = process.pid;
  process.forked = process.arena != nullptr && !process.refused;
}

bool wait_for_recorder(const uint64_t* counter, uint64_t wanted, uint32_t* waiting, uint32_t* wake) {
  ArenaHeader* const arena = process.arena;
  uint64_t heartbeat = 0;
  int silent = 0;
  bool there = true;
  while (there && __atomic_load_n(counter, __ATOMIC_ACQUIRE) < wanted) {
    const uint32_t seen = __atomic_load_n(wake, __ATOMIC_ACQUIRE);
    __atomic_store_n(waiting, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(counter, __ATOMIC_SEQ_CST) >= wanted) break;
    const timespec limit{0, kWaitNs};
    const long woken = syscall(SYS_futex, wake, FUTEX_WAIT, seen, &limit, nullptr, 0);
    if (__atomic_load_n(&arena->stop, __ATOMIC_RELAXED) != 0) there = false;
    const uint64_t beat = __atomic_load_n(&arena->heartbeat, __ATOMIC_RELAXED);
    silent = beat != heartbeat || woken == 0 ? 0 : silent + 1;
    heartbeat = beat;
    const bool gone = silent > kGoneWaits && kill(arena->recorder_pid, 0) != 0 && errno == ESRCH;
    if (gone || silent > kGivenUpWaits) there = false;
  }
  __atomic_store_n(waiting, 0, __ATOMIC_RELAXED);
  if (!there) {  // the program runs on
    process.refused = true;
    __atomic_store_n(&arena->stop, 1, __ATOMIC_RELAXED);  // its other threads, too
  }
  return there;
}

void* begin_record(LogKind kind, size_t bytes) {
  if (!attach_process()) return nullptr;
  ArenaHeader* const arena = process.arena;
  bytes = (bytes + 7) & ~size_t{7};
  const uint64_t written = arena->log_written;
  const size_t place = written % arena->log_bytes;
  const size_t rest = arena->log_bytes - place;
  const size_t skipped = rest < bytes ? rest : 0;
  const uint64_t end = written + skipped + bytes;
  if (end > arena->log_bytes &&
      !wait_for_recorder(&arena->log_consumed, end - arena->log_bytes, &arena->log_waiting, &arena->log_wake))
    return nullptr;
  char* const log = reinterpret_cast<char*>(arena) + arena->log_offset;
  if (skipped > 0) {
    const LogRecord filler{static_cast<uint32_t>(skipped), LogKind{}, 0};
    memcpy(log + place, &filler, sizeof filler);
    __atomic_store_n(&arena->log_written, written + skipped, __ATOMIC_RELEASE);
  }
  char* const at = log + (skipped > 0 ? 0 : place);
  memset(at, 0, bytes);
  const LogRecord record{static_cast<uint32_t>(bytes), kind, 0};
  memcpy(at, &record, sizeof record);
  return at;
}

void publish_record(const void* record) {
  __atomic_store_n(&process.arena->log_written,
                   process.arena->log_written + static_cast<const LogRecord*>(record)->bytes,
                   __ATOMIC_RELEASE);
}

void note(const char* text) {
  const size_t size = strlen(text);
  auto* const record = static_cast<LogNote*>(begin_record(LogKind::NOTE, sizeof(LogNote) + size));
  if (record == nullptr) return;
  record->text_bytes = static_cast<uint32_t>(size);
  memcpy(record + 1, text, size);
  publish_record(record);
}

}  // namespace ptkit::qemu
