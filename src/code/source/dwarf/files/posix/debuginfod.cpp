#include "code/source/dwarf/files/debuginfod.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

namespace ptkit::code::dwarf {
namespace {

struct debuginfod_client;  // elfutils/debuginfod.h, which need not be installed

struct Client {
  using Begin = debuginfod_client* (*)();
  using End = void (*)(debuginfod_client*);
  using FindDebugInfo = int (*)(debuginfod_client*, const unsigned char*, int, char**);

  Begin begin = nullptr;
  End end = nullptr;
  FindDebugInfo find_debug_info = nullptr;

  Client() {
    void* const library = ::dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return;
    begin = reinterpret_cast<Begin>(::dlsym(library, "debuginfod_begin"));
    end = reinterpret_cast<End>(::dlsym(library, "debuginfod_end"));
    find_debug_info = reinterpret_cast<FindDebugInfo>(::dlsym(library, "debuginfod_find_debuginfo"));
  }
  [[nodiscard]] bool is_there() const noexcept { return begin && end && find_debug_info; }
};

}  // namespace

std::string fetch_debug_file(const std::string& build_id) {
  const char* const servers = std::getenv("DEBUGINFOD_URLS");
  if (servers == nullptr || *servers == '\0' || build_id.empty()) return {};
  static const Client library;  // stays open
  if (!library.is_there()) return {};
  const std::unique_ptr<debuginfod_client, Client::End> client(library.begin(), library.end);
  if (!client) return {};
  char* path = nullptr;
  constexpr int kIsText = 0;  // a length of 0: the build-id is in hex
  const int file = library.find_debug_info(
      client.get(), reinterpret_cast<const unsigned char*>(build_id.c_str()), kIsText, &path);
  const std::unique_ptr<char, decltype(&std::free)> owned(path, &std::free);
  if (file < 0) return {};
  static_cast<void>(::close(file));
  return path == nullptr ? std::string() : std::string(path);
}

}  // namespace ptkit::code::dwarf
