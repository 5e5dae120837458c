// The socket on which processes in the emulator connect to the recorder. mkdtemp() makes its folder, so only
// the same user can enter it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "capture/linux/emulator/plugin/channel.h"
#include "capture/linux/emulator/shared_memory.h"
#include "capture/linux/process/process.h"

namespace ptkit::capture {

class ChannelServer {
 public:
  [[nodiscard]] static base::Result<ChannelServer> create();
  ChannelServer(ChannelServer&& other) noexcept;
  ChannelServer& operator=(ChannelServer&&) = delete;
  ~ChannelServer();

  [[nodiscard]] const std::string& folder() const noexcept { return folder_; }
  [[nodiscard]] std::string socket_path() const { return folder_ + "/socket"; }
  [[nodiscard]] int file() const noexcept { return listener_.get(); }  // readable: a process connects

  struct Client {
    Fd connection;
    pid_t pid = 0;  // in the recorder's PID namespace
    plugin::Hello hello{};
    bool valid = false;  // a plugin of this version sent the hello
    bool gone = false;   // the client closed the socket before its hello was complete: it executed no code
  };
  // Accepts the next process that connects, if any.
  [[nodiscard]] std::optional<Client> accept();
  // False if the caller is gone.
  static bool welcome(const Client& client, std::uint64_t number, const SharedMemory& shared);
  static void refuse(const Client& client);  // the process continues unrecorded

 private:
  ChannelServer(std::string folder, Fd listener)
      : folder_(std::move(folder)), listener_(std::move(listener)) {}

  std::string folder_;
  Fd listener_;
};

}  // namespace ptkit::capture
