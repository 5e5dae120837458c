#include "capture/linux/emulator/channel_server.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace ptkit::capture {

namespace {

constexpr int kBacklog = 128;
constexpr timeval kHelloTime{1, 0};  // timeout; a plugin sends its hello at once
// Characters that QEMU's options and LD_PRELOAD interpret.
constexpr const char* kSpecial = " ,:;$";
constexpr std::size_t kRoom = sizeof("/ptkit-XXXXXX/socket");

base::Failure socket_failed(const std::string& what) {
  return {base::Status::IO_ERROR, 0, what + ": " + std::strerror(errno)};
}

bool usable(const char* folder) {
  return folder != nullptr && *folder == '/' && std::strpbrk(folder, kSpecial) == nullptr &&
         std::strlen(folder) + kRoom <= sizeof(sockaddr_un::sun_path);
}

bool hung_up(int connection) {
  char byte = 0;
  return ::recv(connection, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

// Sends the message and a file descriptor (SCM_RIGHTS).
bool send_with_file(int connection, const plugin::Welcome& welcome, int file) {
  plugin::Welcome message = welcome;
  iovec part{&message, sizeof message};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr head{};
  head.msg_iov = &part;
  head.msg_iovlen = 1;
  if (file >= 0) {
    head.msg_control = control.data();
    head.msg_controllen = control.size();
    cmsghdr* const rights = CMSG_FIRSTHDR(&head);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof file);
    std::memcpy(CMSG_DATA(rights), &file, sizeof file);
  }
  return ::sendmsg(connection, &head, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof message);
}

}  // namespace

base::Result<ChannelServer> ChannelServer::create() {
  const char* given = std::getenv("TMPDIR");
  std::string folder = (usable(given) ? std::string(given) : "/tmp") + "/ptkit-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) return socket_failed("cannot make a folder like " + folder);
  ChannelServer server(std::move(folder),
                       Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)));
  if (server.file() < 0) return socket_failed("cannot make a socket");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, server.socket_path().c_str(), sizeof address.sun_path - 1);
  if (::bind(server.file(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(server.file(), kBacklog) != 0) {
    return socket_failed("cannot make the socket " + server.socket_path());
  }
  return server;
}

ChannelServer::ChannelServer(ChannelServer&& other) noexcept
    : folder_(std::exchange(other.folder_, {})), listener_(std::move(other.listener_)) {}

ChannelServer::~ChannelServer() {
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

std::optional<ChannelServer::Client> ChannelServer::accept() {
  Client client;
  client.connection = Fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  const int connection = client.connection.get();
  if (connection < 0) return {};
  ucred peer{};
  socklen_t size = sizeof peer;
  static_cast<void>(::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size));
  static_cast<void>(::setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &kHelloTime, sizeof kHelloTime));
  static_cast<void>(::setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &kHelloTime, sizeof kHelloTime));
  client.pid = peer.pid;
  const ssize_t got = ::recv(connection, &client.hello, sizeof client.hello, MSG_WAITALL);
  client.valid = got == static_cast<ssize_t>(sizeof client.hello) &&
                 client.hello.magic == plugin::kChannelMagic &&
                 client.hello.version == plugin::kChannelVersion;
  const bool cut = got >= 0 && got < static_cast<ssize_t>(sizeof client.hello);
  client.gone = (cut && hung_up(connection)) || (got < 0 && errno == ECONNRESET);
  client.hello.program[sizeof client.hello.program - 1] = 0;
  return client;
}

bool ChannelServer::welcome(const Client& client, std::uint64_t number, const SharedMemory& shared) {
  plugin::Welcome message{};
  message.magic = plugin::kChannelMagic;
  message.accepted = 1;
  message.memory = number;
  message.bytes = shared.bytes();
  return send_with_file(client.connection.get(), message, shared.file());
}

void ChannelServer::refuse(const Client& client) {
  plugin::Welcome message{};
  message.magic = plugin::kChannelMagic;
  static_cast<void>(send_with_file(client.connection.get(), message, -1));
}

}  // namespace ptkit::capture
