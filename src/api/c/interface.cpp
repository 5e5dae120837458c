// The functions of ptkit.h: checks of arguments, and the boundary for exceptions. No logic.
#include <algorithm>
#include <array>

#include "api/c/coverage.h"
#include "api/c/failure.h"
#include "base/system/thread_data.h"

using ptkit::api::c::fail;
using ptkit::api::c::fail_config;
using ptkit::api::c::guarded;
using ptkit::base::Bytes;

namespace {

#define PT_BRANCH_KIND(name, value, text) static_assert(PTKIT_##name == value);
#include "flow/rows/kinds.def"

// The handle for one call; false: another call has it.
class Use {
 public:
  explicit Use(ptkit_coverage& coverage) noexcept
      : coverage_(coverage.busy.exchange(true) ? nullptr : &coverage) {}
  ~Use() {
    if (coverage_ != nullptr) coverage_->busy = false;
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  explicit operator bool() const noexcept { return coverage_ != nullptr; }

 private:
  ptkit_coverage* coverage_;
};

// Calls work() with the handle alone.
template <typename Work>
int use(ptkit_coverage* coverage, const Work& work) noexcept {
  if (coverage == nullptr) return fail_config("coverage is NULL");
  const Use alone(*coverage);
  if (!alone) return fail(PTKIT_IN_USE, ptkit_status_sentence(PTKIT_IN_USE));
  return guarded(work);
}

[[nodiscard]] Bytes bytes_of(const void* memory, std::size_t size) noexcept {
  return {static_cast<const std::uint8_t*>(memory), size};
}

[[nodiscard]] ptkit_edge edge_of(const ptkit::tables::coverage::Edge& edge) noexcept {
  return {edge.from_ip, edge.to_ip, edge.count, edge.hash, static_cast<std::uint32_t>(edge.kind)};
}

[[nodiscard]] ptkit_error error_of(const ptkit::tables::coverage::ErrorRow& row) noexcept {
  return {row.error.span.offset, row.error.ip_known ? row.error.ip : 0,
          static_cast<std::int32_t>(row.error.code), 0};
}

// Copies as many rows as fit.
template <typename Rows, typename Out, typename Convert>
std::size_t copy(ptkit_coverage* coverage, const Rows& rows_of, Out* out, std::size_t most,
                 const Convert& convert) noexcept {
  if (coverage == nullptr) return 0;
  const Use alone(*coverage);
  if (!alone) return 0;
  const auto rows = rows_of(coverage->decoder());
  if (out != nullptr) {
    const auto some = rows.first(std::min(rows.size(), most));
    std::transform(some.begin(), some.end(), out, convert);
  }
  return rows.size();
}

}  // namespace

unsigned ptkit_abi_version(void) { return PTKIT_ABI_VERSION; }
const char* ptkit_version(void) { return PTKIT_RELEASE; }

int ptkit_coverage_open(const ptkit_options* options, ptkit_coverage** coverage) {
  if (coverage == nullptr) return fail_config("the handle has no address: coverage is NULL");
  *coverage = nullptr;
  ptkit::base::allocate_data_with_threads();
  return guarded([=] {
    const auto settings = ptkit::api::c::read_options(options);
    if (!settings.ok()) return fail(settings.failure());
    *coverage = std::make_unique<ptkit_coverage>(settings.value()).release();
    return static_cast<int>(PTKIT_OK);
  });
}

void ptkit_coverage_close(ptkit_coverage* coverage) { delete coverage; }

int ptkit_coverage_add_image(ptkit_coverage* coverage, const char* path, uint64_t address) {
  if (path == nullptr) return fail_config("path is NULL");
  ptkit::api::c::LoadLocation location;
  if (address != PTKIT_AS_LINKED) location.address = address;
  return use(coverage, [=] { return coverage->add_image(path, location); });
}

int ptkit_coverage_add_code(ptkit_coverage* coverage, uint64_t address, const void* code, size_t size) {
  if (code == nullptr && size != 0) return fail_config("code is NULL");
  return use(coverage, [=] {
    return coverage->add_code(bytes_of(code, size), ptkit::api::c::LoadLocation{.address = address});
  });
}

int ptkit_coverage_add_image_at(ptkit_coverage* coverage, const char* path, const ptkit_place* place) {
  if (path == nullptr) return fail_config("path is NULL");
  return use(coverage, [=] {
    const auto read = ptkit::api::c::read_location(place);
    return read.ok() ? coverage->add_image(path, read.value()) : fail(read.failure());
  });
}

int ptkit_coverage_add_code_at(ptkit_coverage* coverage, const void* code, size_t size,
                               const ptkit_place* place) {
  if (code == nullptr && size != 0) return fail_config("code is NULL");
  return use(coverage, [=] {
    const auto read = ptkit::api::c::read_location(place);
    return read.ok() ? coverage->add_code(bytes_of(code, size), read.value()) : fail(read.failure());
  });
}

int ptkit_coverage_forget(ptkit_coverage* coverage, uint64_t first, uint64_t last) {
  if (last < first) return fail_config("last is below first");
  return use(coverage, [=] {
    coverage->forget(first, last);
    return static_cast<int>(PTKIT_OK);
  });
}

int ptkit_coverage_decode(ptkit_coverage* coverage, const void* buffer, size_t size, uint8_t* hits,
                          uint8_t* virgin, ptkit_outcome* outcome) {
  return ptkit_coverage_decode_ring(coverage, buffer, size, nullptr, 0, hits, virgin, outcome);
}

int ptkit_coverage_decode_ring(ptkit_coverage* coverage, const void* older, size_t older_size,
                               const void* newer, size_t newer_size, uint8_t* hits, uint8_t* virgin,
                               ptkit_outcome* outcome) {
  if ((older == nullptr && older_size != 0) || (newer == nullptr && newer_size != 0))
    return fail_config("the buffer is NULL");
  return use(coverage, [=] {
    const std::array<Bytes, 2> chunks{bytes_of(older, older_size), bytes_of(newer, newer_size)};
    return coverage->decode(chunks, hits, virgin, outcome);
  });
}

size_t ptkit_coverage_edges(ptkit_coverage* coverage, ptkit_edge* edges, size_t most) {
  return copy(
      coverage, [](const auto& decoder) { return decoder.edges(); }, edges, most, edge_of);
}

size_t ptkit_coverage_new_edges(ptkit_coverage* coverage, ptkit_edge* edges, size_t most) {
  return copy(
      coverage, [](const auto& decoder) { return decoder.new_edges(); }, edges, most, edge_of);
}

size_t ptkit_coverage_errors(ptkit_coverage* coverage, ptkit_error* errors, size_t most) {
  return copy(
      coverage, [](const auto& decoder) { return decoder.errors(); }, errors, most, error_of);
}

uint32_t ptkit_edge_hash(uint64_t from, uint64_t to) { return ptkit::tables::coverage::edge_hash(from, to); }
