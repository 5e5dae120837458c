#include "base/huge_pages.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>

namespace ptkit::base {

namespace {

// Counts free blocks of at least a huge page in /proc/buddyinfo. Each line has a zone ("Node 0, zone Normal")
// and the numbers of free blocks of 1, 2, 4... pages.
std::size_t count_free() noexcept {
  constexpr unsigned kOrder = 9;
  std::array<char, 4096> text{};
  const int file = open("/proc/buddyinfo", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t size = read(file, text.data(), text.size() - 1);  // leaves a byte for the null
  close(file);
  if (size <= 0) return 0;
  constexpr const char* kZone = "zone";
  std::size_t free = 0;
  for (const char* at = std::strstr(text.data(), kZone); at != nullptr; at = std::strstr(at, kZone)) {
    at += std::strlen(kZone);
    while (*at == ' ') ++at;
    while (*at != ' ' && *at != 0) ++at;  // the zone's name
    char* end = nullptr;
    unsigned order = 0;
    for (; *at != '\n' && *at != 0; at = end, ++order) {
      const unsigned long count = std::strtoul(at, &end, 10);
      while (*end == ' ') ++end;
      if (end == at) return 0;
      if (order >= kOrder) free += count;
    }
  }
  return free;
}

}  // namespace

void prefer_huge_pages(void* memory, std::size_t bytes) noexcept {
  constexpr std::size_t kMany = 64;
  if (count_free() >= kMany) static_cast<void>(::madvise(memory, bytes & ~(kHugePage - 1), MADV_HUGEPAGE));
}

}  // namespace ptkit::base
