// A process that connects to a recorder as QEMU with the plugin does, and sends what a test wants.
#pragma once

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>
#include <x86intrin.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "base/posix/map_memory.h"
#include "capture/linux/emulator/plugin/channel.h"

namespace ptkit::capture::test {

class FakeGuest {
 public:
  struct Parent {
    std::int32_t pid = 0;
    std::uint64_t memory = 0;
    std::uint64_t blocks = 0;
  };

  bool connect(const std::string& socket_path) { return connect(socket_path, Parent()); }
  // Returns false if the recorder refuses the process.
  bool connect(const std::string& socket_path, const Parent& parent,
               std::uint32_t magic = plugin::kChannelMagic) {
    const int connection = connect_to(socket_path);
    if (connection < 0) return false;
    plugin::Hello hello{};
    hello.magic = magic;
    hello.version = plugin::kChannelVersion;
    hello.pid = ::getpid();
    hello.parent = parent.pid;
    hello.first_block = parent.blocks;
    hello.parent_memory = parent.memory;
    hello.tsc = __rdtsc();
    std::strcpy(hello.program, "/usr/bin/fake");
    if (::send(connection, &hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello) return false;
    const bool accepted = receive(connection);
    ::close(connection);
    next_block_ = static_cast<std::uint32_t>(parent.blocks);
    return accepted;
  }
  // Connects as a process that is killed after `bytes` bytes of its hello.
  static void hang_up(const std::string& socket_path, std::size_t bytes) {
    const int connection = connect_to(socket_path);
    const plugin::Hello hello{};
    static_cast<void>(::send(connection, &hello, bytes, MSG_NOSIGNAL));
    ::close(connection);
  }

  [[nodiscard]] plugin::SharedMemoryHeader& shared() const {
    return *reinterpret_cast<plugin::SharedMemoryHeader*>(memory_);
  }
  [[nodiscard]] plugin::SlotHeader& slot(std::uint32_t index = 0) const {
    return *reinterpret_cast<plugin::SlotHeader*>(memory_ + shared().slots_offset +
                                                  index * shared().slot_bytes);
  }
  [[nodiscard]] std::uint64_t number() const { return number_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

  void take_slot(std::uint32_t index = 0) {
    slot(index).tid = static_cast<std::int32_t>(::syscall(SYS_gettid));
    clear_line(index);
    set(slot(index).state, std::uint32_t{plugin::SLOT_USED});
  }
  void end_slot(std::uint32_t index = 0) { set(slot(index).state, std::uint32_t{plugin::SLOT_ENDED}); }

  // ---- the log

  template <typename T>
  void log(plugin::LogKind kind, T record, const std::string& tail) {
    record.record.kind = kind;
    record.record.bytes = static_cast<std::uint32_t>((sizeof record + tail.size() + 7) & ~std::size_t{7});
    log_raw(record, tail);
  }
  template <typename T>
  void log_raw(const T& record, const std::string& tail) {
    std::uint8_t* at = memory_ + shared().log_offset + shared().log_written % shared().log_bytes;
    std::memcpy(at, &record, sizeof record);
    std::memcpy(at + sizeof record, tail.data(), tail.size());
    set(shared().log_written, shared().log_written + record.record.bytes);
  }
  std::uint32_t block(std::uint64_t pc, const std::string& code) {
    plugin::LogBlock record{};
    record.pc = pc;
    record.tsc = __rdtsc();
    record.size = static_cast<std::uint32_t>(code.size());
    log(plugin::LogKind::BLOCK, record, code);
    return next_block_++;
  }

  // ---- lines

  [[nodiscard]] std::size_t line_blocks() const { return plugin::line_blocks(shared().line_bytes); }

  // Begins the line that is being filled, without completing it.
  void begin_line(std::span<const std::uint32_t> blocks, std::uint32_t index = 0) {
    plugin::Line* line = line_at(slot(index).lines, index);
    line->tsc = __rdtsc();
    std::memcpy(line->blocks, blocks.data(), blocks.size_bytes());
  }
  bool line(std::span<const std::uint32_t> blocks, std::uint32_t index = 0) {
    begin_line(blocks, index);
    return publish(index);
  }
  bool mark(plugin::MarkKind kind, std::initializer_list<std::uint64_t> values = {},
            std::uint32_t index = 0) {
    plugin::MarkLine mark{__rdtsc(), plugin::kMark, kind, {}};
    std::copy(values.begin(), values.end(), std::begin(mark.values));
    std::memcpy(line_at(slot(index).lines, index), &mark, sizeof mark);
    return publish(index);
  }

 private:
  template <typename T>
  static void set(T& to, T value) {
    __atomic_store_n(&to, value, __ATOMIC_SEQ_CST);
  }

  static int connect_to(const std::string& socket_path) {
    const int connection = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, socket_path.c_str(), sizeof address.sun_path - 1);
    if (::connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return connection;
    ::close(connection);
    return -1;
  }

  bool receive(int connection) {
    plugin::Welcome welcome{};
    iovec part{&welcome, sizeof welcome};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr head{};
    head.msg_iov = &part;
    head.msg_iovlen = 1;
    head.msg_control = control;
    head.msg_controllen = sizeof control;
    if (::recvmsg(connection, &head, MSG_WAITALL) != sizeof welcome || welcome.accepted == 0) return false;
    int file = -1;
    std::memcpy(&file, CMSG_DATA(CMSG_FIRSTHDR(&head)), sizeof file);
    bytes_ = welcome.bytes;
    number_ = welcome.memory;
    memory_ =
        static_cast<std::uint8_t*>(base::map_memory(bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    ::close(file);
    return memory_ != MAP_FAILED;
  }

  [[nodiscard]] std::uint64_t capacity() const { return shared().lines_bytes / shared().line_bytes; }
  [[nodiscard]] plugin::Line* line_at(std::uint64_t number, std::uint32_t index) const {
    auto* lines = reinterpret_cast<std::uint8_t*>(&slot(index)) + shared().lines_offset;
    return reinterpret_cast<plugin::Line*>(lines + number % capacity() * shared().line_bytes);
  }
  void clear_line(std::uint32_t index) const {
    plugin::Line* line = line_at(slot(index).lines, index);
    std::memset(line, 0xff, shared().line_bytes);
    line->tsc = 0;
  }
  // Returns false if the recording has ended.
  bool publish(std::uint32_t index) {
    plugin::SlotHeader& head = slot(index);
    set(head.lines, head.lines + 1);
    while (head.lines + 1 - __atomic_load_n(&head.consumed, __ATOMIC_SEQ_CST) >= capacity()) {
      const std::uint32_t seen = __atomic_load_n(&head.wake, __ATOMIC_SEQ_CST);
      set(head.waiting, 1U);
      const timespec limit{0, 100000000};
      if (head.lines + 1 - __atomic_load_n(&head.consumed, __ATOMIC_SEQ_CST) >= capacity())
        ::syscall(SYS_futex, &head.wake, FUTEX_WAIT, seen, &limit, nullptr, 0);
      set(head.waiting, 0U);
      if (__atomic_load_n(&shared().stop, __ATOMIC_SEQ_CST) != 0) return false;
    }
    clear_line(index);
    return __atomic_load_n(&shared().stop, __ATOMIC_SEQ_CST) == 0;
  }

  std::uint8_t* memory_ = nullptr;
  std::size_t bytes_ = 0;
  std::uint64_t number_ = 0;
  std::uint32_t next_block_ = 0;
};

}  // namespace ptkit::capture::test
