// Random options, code, and two buffers for one handle of the C library: no failure but of the options, and
// maps and lists that agree with a handle that has seen nothing else.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "api/c/options.h"
#include "psb_header.h"
#include "ptkit.h"

namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t kMapBytes = 256;  // few, so that edges share bytes

struct Closer {
  void operator()(ptkit_coverage* coverage) const noexcept { ptkit_coverage_close(coverage); }
};
using Handle = std::unique_ptr<ptkit_coverage, Closer>;

size_t read_code(void* argument, uint64_t address, void* out, size_t size) {
  const auto& code = *static_cast<const Bytes*>(argument);
  if (address < ptkit::test::kCode || address - ptkit::test::kCode >= code.size()) return 0;
  const std::size_t offset = address - ptkit::test::kCode;
  const std::size_t count = std::min(size, code.size() - offset);
  std::memcpy(out, code.data() + offset, count);
  return count;
}

Handle open_handle(std::uint8_t choices, Bytes& code) {
  ptkit_options options{};
  options.size = sizeof options;
  options.map_size = kMapBytes;
  if ((choices & 1U) != 0) options.flags |= PTKIT_RESYNC_AT_PSB;
  if ((choices & 2U) != 0) {
    options.flags |= PTKIT_RTIT_CTL_KNOWN;
    options.rtit_ctl = std::uint64_t{1} << 11U;  // DisRETC
  }
  if ((choices & 4U) != 0) options.ranges[0] = {PTKIT_RANGE_FILTER, 0, ptkit::test::kCode, 0x1040};
  if ((choices & 8U) != 0) {
    options.read_code = read_code;
    options.read_code_argument = &code;
  }
  ptkit_coverage* coverage = nullptr;
  if (ptkit_coverage_open(&options, &coverage) != PTKIT_OK) std::abort();
  Handle handle(coverage);
  if ((choices & 8U) == 0 &&
      ptkit_coverage_add_code(coverage, ptkit::test::kCode, code.data(), code.size()) != PTKIT_OK)
    std::abort();
  return handle;
}

struct Result {
  ptkit_outcome outcome{};
  Bytes hits = Bytes(kMapBytes, 0);
  Bytes virgin = Bytes(kMapBytes, 0xff);
  std::vector<std::uint64_t> sums = std::vector<std::uint64_t>(kMapBytes, 0);
};

Result decode(const Handle& handle, const Bytes& stream, std::size_t cut) {
  Result result;
  result.outcome.size = sizeof result.outcome;
  if (ptkit_coverage_decode_ring(handle.get(), stream.data(), cut, stream.data() + cut, stream.size() - cut,
                                 result.hits.data(), result.virgin.data(), &result.outcome) != PTKIT_OK)
    std::abort();
  std::vector<ptkit_edge> edges(result.outcome.edges);
  if (ptkit_coverage_edges(handle.get(), edges.data(), edges.size()) != edges.size()) std::abort();
  for (const ptkit_edge& edge : edges) result.sums[edge.hash & (kMapBytes - 1)] += edge.count;
  for (std::size_t at = 0; at < kMapBytes; ++at) {
    if (result.hits[at] != std::min<std::uint64_t>(result.sums[at], 255)) std::abort();
  }
  std::vector<ptkit_error> errors(result.outcome.errors);
  if (ptkit_coverage_errors(handle.get(), errors.data(), errors.size()) != errors.size()) std::abort();
  for (const ptkit_error& error : errors) {
    if (error.offset > stream.size() || error.status == PTKIT_OK) std::abort();
  }
  // In an empty virgin map, all edges are new.
  if (ptkit_coverage_new_edges(handle.get(), nullptr, 0) != edges.size()) std::abort();
  return result;
}

// Bytes of a size that the caller says, taken as options.
void try_options(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kRoom = 4096;
  alignas(ptkit_options) static unsigned char memory[kRoom];
  std::memset(memory, 0, sizeof memory);
  std::memcpy(memory, data, std::min(size, kRoom));
  ptkit_options options;
  std::memcpy(&options, memory, sizeof options);
  options.read_code = nullptr;
  std::memcpy(memory, &options, sizeof options);
  ptkit_coverage* coverage = nullptr;
  const auto* const given = reinterpret_cast<const ptkit_options*>(memory);
  const int status = ptkit_coverage_open(given, &coverage);
  if (ptkit::api::c::read_options(given).ok() != (status == PTKIT_OK)) std::abort();
  if ((status == PTKIT_OK) != (coverage != nullptr)) std::abort();
  if (status != PTKIT_OK && *ptkit_failure_message() == '\0') std::abort();
  ptkit_coverage_close(coverage);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try_options(data, size);
  if (size < 4) return 0;
  const std::uint8_t choices = data[0];
  const std::size_t code_size = std::min<std::size_t>(data[2], size - 4);
  Bytes code(data + 4, data + 4 + code_size);
  Bytes first = ptkit::test::psb_header(data[1]);
  const auto header_size = static_cast<std::ptrdiff_t>(first.size());
  first.insert(first.end(), data + 4 + code_size, data + size);
  Bytes second = first;
  std::reverse(second.begin() + header_size, second.end());
  const std::size_t cut = data[3] % (first.size() + 1);

  const Handle warm = open_handle(choices, code);
  decode(warm, second, 0);
  const Result again = decode(warm, first, cut);
  const Handle fresh = open_handle(choices, code);
  const Result once = decode(fresh, first, 0);
  if (std::memcmp(&again.outcome, &once.outcome, sizeof once.outcome) != 0) std::abort();
  if (again.hits != once.hits || again.virgin != once.virgin) std::abort();
  return 0;
}
