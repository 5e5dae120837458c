// Writes a recording as a plain bundle: plain_bundle RECORDING FILE [CODE ADDRESS]
// CODE is a file of code that all spaces have at the address.
#include "plain_bundle.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>

#include "formats/registry.h"

namespace {

bool add_code(ptkit::trace::TraceBundle& bundle, const std::string& path, std::uint64_t address) {
  auto bytes = ptkit::trace::TraceBuffer::map_file(path);
  if (!bytes.ok()) {
    static_cast<void>(std::fprintf(stderr, "%s\n", bytes.failure().detail.c_str()));
    return false;
  }
  ptkit::trace::CodeRegion region;
  region.address = address;
  region.size = bytes.value().size();
  region.bytes = std::move(bytes.value());
  bundle.code.push_back(std::move(region));
  return true;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3 && count != 5) {
    static_cast<void>(
        std::fprintf(stderr, "give a recording and the file to write, then code and address\n"));
    return 2;
  }
  auto opened = ptkit::formats::open(arguments[1], {});
  if (!opened.ok()) {
    static_cast<void>(std::fprintf(stderr, "%s\n", opened.failure().detail.c_str()));
    return 1;
  }
  if (count == 5 && !add_code(opened.value(), arguments[3], std::strtoull(arguments[4], nullptr, 0)))
    return 1;
  ptkit::base::FieldWriter fields;
  ptkit::portable::describe(fields, opened.value());
  const auto& bytes = fields.bytes();
  std::ofstream file(arguments[2], std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return file.good() ? 0 : 1;
}
