#include "capture/linux/emulator/plugin/process.h"

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

namespace ptkit::capture::plugin {

constinit Process process{};

namespace {

constexpr long kWaitNs = 100'000'000;
// Waits of kWaitNs without a heartbeat after which the recorder is gone: if its process has ended, and in any
// case.
constexpr int kMinSilentWaits = 20;
constexpr int kMaxSilentWaits = 300;
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
  hello.parent_memory = process.forked ? process.memory_number : 0;
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

// Receives the Welcome and the memory file (-1: none).
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

SharedMemoryHeader* exchange(int file, Welcome& welcome) {
  int memory = -1;
  void* shared = MAP_FAILED;
  if (send_hello(file) && receive_welcome(file, welcome, memory))
    shared = mmap(nullptr, welcome.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  if (memory >= 0) close(memory);
  return shared == MAP_FAILED ? nullptr : static_cast<SharedMemoryHeader*>(shared);
}

}  // namespace

bool attach_process() {
  if (process.refused) return false;
  if (process.shared != nullptr && !process.forked) return recording();
  SharedMemoryHeader* const parent_shared = process.forked ? process.shared : nullptr;
  const size_t parent_bytes = process.shared_bytes;
  process.shared = nullptr;
  process.pid = getpid();
  Welcome welcome{};
  const int file = connect_to_recorder();
  if (file >= 0) {
    process.shared = exchange(file, welcome);
    close(file);
  }
  if (process.shared == nullptr) {
    process.refused = true;
    if (parent_shared != nullptr && file < 0)
      __atomic_fetch_add(&parent_shared->lost_children, 1, __ATOMIC_RELAXED);
  } else {
    process.shared_bytes = welcome.bytes;
    process.memory_number = welcome.memory;
    process.shared->first_block = process.forked ? process.next_block : 0;
    __atomic_store_n(&process.shared->attached, 1, __ATOMIC_RELEASE);
  }
  process.forked = false;
  if (parent_shared != nullptr) munmap(parent_shared, parent_bytes);
  return process.shared != nullptr;
}

void forget_process() {
  process.parent = process.pid;
  process.forked = process.shared != nullptr && !process.refused;
}

bool wait_for_recorder(const uint64_t* counter, uint64_t wanted, uint32_t* waiting, uint32_t* wake) {
  SharedMemoryHeader* const shared = process.shared;
  uint64_t heartbeat = 0;
  int silent = 0;
  bool there = true;
  while (there && __atomic_load_n(counter, __ATOMIC_ACQUIRE) < wanted) {
    const uint32_t seen = __atomic_load_n(wake, __ATOMIC_ACQUIRE);
    __atomic_store_n(waiting, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(counter, __ATOMIC_SEQ_CST) >= wanted) break;
    const timespec limit{0, kWaitNs};
    const long woken = syscall(SYS_futex, wake, FUTEX_WAIT, seen, &limit, nullptr, 0);
    if (__atomic_load_n(&shared->stop, __ATOMIC_RELAXED) != 0) there = false;
    const uint64_t heartbeat_now = __atomic_load_n(&shared->heartbeat, __ATOMIC_RELAXED);
    silent = heartbeat_now != heartbeat || woken == 0 ? 0 : silent + 1;
    heartbeat = heartbeat_now;
    const bool gone = silent > kMinSilentWaits && kill(shared->recorder_pid, 0) != 0 && errno == ESRCH;
    if (gone || silent > kMaxSilentWaits) there = false;
  }
  __atomic_store_n(waiting, 0, __ATOMIC_RELAXED);
  if (!there) {  // the program continues
    process.refused = true;
    __atomic_store_n(&shared->stop, 1, __ATOMIC_RELAXED);  // for its other threads, too
  }
  return there;
}

void* begin_record(LogKind kind, size_t bytes) {
  if (!attach_process()) return nullptr;
  SharedMemoryHeader* const shared = process.shared;
  bytes = (bytes + 7) & ~size_t{7};
  const uint64_t written = shared->log_written;
  const size_t offset = written % shared->log_bytes;
  const size_t rest = shared->log_bytes - offset;
  const size_t skipped = rest < bytes ? rest : 0;
  const uint64_t end = written + skipped + bytes;
  if (end > shared->log_bytes && !wait_for_recorder(&shared->log_consumed, end - shared->log_bytes,
                                                    &shared->log_waiting, &shared->log_wake))
    return nullptr;
  char* const log = reinterpret_cast<char*>(shared) + shared->log_offset;
  if (skipped > 0) {
    const LogRecord filler{static_cast<uint32_t>(skipped), LogKind{}, 0};
    memcpy(log + offset, &filler, sizeof filler);
    __atomic_store_n(&shared->log_written, written + skipped, __ATOMIC_RELEASE);
  }
  char* const at = log + (skipped > 0 ? 0 : offset);
  memset(at, 0, bytes);
  const LogRecord record{static_cast<uint32_t>(bytes), kind, 0};
  memcpy(at, &record, sizeof record);
  return at;
}

void publish_record(const void* record) {
  __atomic_store_n(&process.shared->log_written,
                   process.shared->log_written + static_cast<const LogRecord*>(record)->bytes,
                   __ATOMIC_RELEASE);
}

void note(NoteKind kind, const char* path, int error) {
  const size_t size = strnlen(path, PATH_MAX);
  auto* const record = static_cast<LogNote*>(begin_record(LogKind::NOTE, sizeof(LogNote) + size));
  if (record == nullptr) return;
  record->text_bytes = static_cast<uint32_t>(size);
  record->kind = kind;
  record->error = error;
  memcpy(record + 1, path, size);
  publish_record(record);
}

}  // namespace ptkit::capture::plugin
