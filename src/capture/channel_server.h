// Where processes in the emulator find the recorder: a socket in a folder that nobody else can enter.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "capture/arena.h"
#include "capture/tracee.h"
#include "qemu/channel.h"

namespace ptkit::capture {

class ChannelServer {
 public:
  [[nodiscard]] static base::Result<ChannelServer> create();
  ChannelServer(ChannelServer&& other) noexcept;
  ChannelServer& operator=(ChannelServer&&) = delete;
  ~ChannelServer();

  [[nodiscard]] const std::string& folder() const noexcept { return folder_; }
  [[nodiscard]] std::string socket_path() const { return folder_ + "/socket"; }
  [[nodiscard]] int file() const noexcept { return listener_.get(); }  // readable: somebody calls

  struct Caller {
    Fd connection;
    pid_t pid = 0;  // as seen from here
    qemu::Hello hello{};
    bool sound = false;  // it is a plugin of this version
    bool gone = false;   // hung up before its hello was said: killed, before it ran anything
  };
  // The next one who calls, if any.
  [[nodiscard]] std::optional<Caller> accept();
  // False if the caller is gone.
  static bool welcome(const Caller& caller, std::uint64_t number, const Arena& arena);
  static void refuse(const Caller& caller);  // run on, unrecorded

 private:
  ChannelServer(std::string folder, Fd listener)
      : folder_(std::move(folder)), listener_(std::move(listener)) {}

  std::string folder_;
  Fd listener_;
};

}  // namespace ptkit::capture
