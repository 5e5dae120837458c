// Answers of confined processes: the recorder takes them for as hostile as the files that they are about.
#include <cstdlib>

#include "capture/linux/files/parse_request.h"
#include "code/bounds/table.h"
#include "code/image/files/imports.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ptkit::capture;
  constexpr std::size_t kHead = 2;
  if (size < kHead) return 0;
  ParseRequest request;
  request.kind = static_cast<ParseRequest::Kind>(data[0] % 5);
  request.file_bytes = std::uint64_t{1} << data[1] % 40U;
  const auto parsed = decode(request, ptkit::base::Bytes(data, size).subspan(kHead));
  if (!parsed) return 0;
  for (const auto& one : parsed->symbols) {
    if (one.file_offset >= request.file_bytes || one.name.find('\0') != std::string::npos) std::abort();
  }
  const auto table = ptkit::code::bounds::UnwindTable::decode(parsed->unwind, request.file_bytes);
  if (!table && !parsed->unwind.empty()) std::abort();
  if (!parsed->imports.empty() && !ptkit::code::image::Imports::decode(parsed->imports)) std::abort();
  for (const auto& one : parsed->spans) {
    if (one.offset >= request.file_bytes) std::abort();
  }
  for (const auto& one : parsed->functions) {
    if (one.size == 0 || one.size > request.file_bytes || one.file_offset > request.file_bytes - one.size)
      std::abort();
  }
  return 0;
}
