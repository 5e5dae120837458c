// Writes the first stream of a trace and its code as a folder in libxdc's format, which other decoders read:
// `trace`, `page_cache.addr` (addresses of pages, 64 bits each) and `page_cache.dump` (the pages, in the same
// order). Bytes of a page that the trace does not have are zeros.
#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>

#include "formats/registry.h"

namespace {

using namespace ptkit;

constexpr std::uint64_t kPage = 4096;
using Pages = std::map<std::uint64_t, std::array<std::uint8_t, kPage>>;

void add(Pages& pages, std::uint64_t address, base::Bytes bytes) {
  while (!bytes.empty()) {
    const std::uint64_t in_page = address % kPage;
    const auto some = bytes.first(std::min<std::size_t>(bytes.size(), kPage - in_page));
    auto& page = pages[address - in_page];
    std::copy(some.begin(), some.end(), page.begin() + static_cast<std::ptrdiff_t>(in_page));
    bytes = bytes.subspan(some.size());
    address += some.size();
  }
}

void write(std::ofstream& file, const void* bytes, std::size_t size) {
  file.write(static_cast<const char*>(bytes), static_cast<std::streamsize>(size));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s TRACE FOLDER\n", argv[0]);
    return 2;
  }
  const auto opened = formats::open(argv[1], {});
  if (!opened.ok()) {
    std::fprintf(stderr, "%s: %s\n", argv[1], opened.failure().detail.c_str());
    return 2;
  }
  Pages pages;
  for (const trace::CodeRegion& region : opened.value().code)
    add(pages, region.address, region.bytes.bytes());
  const std::filesystem::path folder = argv[2];
  std::filesystem::create_directories(folder);
  std::ofstream trace(folder / "trace", std::ios::binary);
  std::ofstream addresses(folder / "page_cache.addr", std::ios::binary);
  std::ofstream dump(folder / "page_cache.dump", std::ios::binary);
  const base::Bytes stream = opened.value().streams.front().data.bytes();
  write(trace, stream.data(), stream.size());
  for (const auto& [address, bytes] : pages) {
    write(addresses, &address, sizeof address);
    write(dump, bytes.data(), bytes.size());
  }
  return trace.flush() && addresses.flush() && dump.flush() ? 0 : 1;
}
