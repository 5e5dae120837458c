// ptkit-parser PARENT: the fork server (capture/linux/confined/processes.h) for the recorder with PID PARENT.
// Its confined processes parse the files of recorded processes. Descriptor 3 is the socket.
#include <charconv>
#include <cstring>

#include "capture/linux/confined/fork_server.h"
#include "capture/linux/files/parse_request.h"

int main(int argc, char** argv) {
  pid_t parent = 0;
  if (argc != 2 || std::from_chars(argv[1], argv[1] + std::strlen(argv[1]), parent).ec != std::errc())
    return 2;
  ptkit::capture::confined::run_fork_server(ptkit::capture::parse, parent,
                                            ptkit::capture::confined::kForkServerSocket);
}
