#include "api/c/coverage.h"

#include <utility>

#include "api/c/failure.h"
#include "code/image/files/code_file.h"

using ptkit::api::c::LoadLocation;
using ptkit::base::Bytes;
using ptkit::tables::coverage::Outcome;
using ptkit::trace::TraceBundle;

namespace {

[[nodiscard]] std::vector<ptkit::trace::SpaceId> spaces_of(TraceBundle& bundle,
                                                           const LoadLocation& location) {
  return location.cr3 ? ptkit::code::image::spaces_with(bundle, *location.cr3)
                      : std::vector{ptkit::trace::kAnySpace};
}

[[nodiscard]] std::shared_ptr<const TraceBundle> bundle_of(const ptkit::api::c::Settings& settings) {
  auto bundle = std::make_shared<TraceBundle>();
  bundle->configuration = settings.configuration;
  return bundle;
}

// Removes what a failed call has added to a bundle.
class Addition {
 public:
  explicit Addition(TraceBundle& bundle) noexcept
      : bundle_(bundle), files_(bundle.files.size()), regions_(bundle.code.size()) {}
  ~Addition() {
    if (kept) return;
    bundle_.files.erase(bundle_.files.begin() + static_cast<std::ptrdiff_t>(files_), bundle_.files.end());
    bundle_.code.erase(bundle_.code.begin() + static_cast<std::ptrdiff_t>(regions_), bundle_.code.end());
  }
  Addition(const Addition&) = delete;
  Addition& operator=(const Addition&) = delete;

  bool kept = false;

 private:
  TraceBundle& bundle_;
  std::size_t files_;
  std::size_t regions_;
};

}  // namespace

ptkit_coverage::ptkit_coverage(const ptkit::api::c::Settings& settings)
    : settings_(settings), decoder_(bundle_of(settings), settings.flow, read_callback()) {
  code_.configuration = settings.configuration;
}

// An exception must not pass the frames of the decoder's functions that are noexcept, nor those of a C
// program.
ptkit::code::image::ReadCallback ptkit_coverage::read_callback() {
  if (settings_.read_code == nullptr) return {};
  return [this](ptkit::trace::SpaceId, std::uint64_t address, std::span<std::uint8_t> out) noexcept {
    try {
      const std::size_t size =
          settings_.read_code(settings_.read_code_argument, address, out.data(), out.size());
      return std::min(size, out.size());
    } catch (...) {
      callback_threw_ = true;
      return std::size_t{0};
    }
  };
}

int ptkit_coverage::add_image(const std::string& path, const LoadLocation& location) {
  ptkit::code::image::Placement placement;
  placement.load_address = location.address;
  placement.layout = location.layout;
  Addition addition(code_);
  const auto spaces = spaces_of(code_, location);
  placement.space = spaces.front();
  const std::size_t before = code_.code.size();
  const auto added = ptkit::code::image::add_image(code_, path, placement);
  if (!added.ok()) return ptkit::api::c::fail(added.failure());
  ptkit::code::image::repeat_in(code_, before, std::span(spaces).subspan(1));
  addition.kept = code_is_new_ = true;
  return PTKIT_OK;
}

int ptkit_coverage::add_code(Bytes code, const LoadLocation& location) {
  if (!location.address) return ptkit::api::c::fail_config("code: it needs an address");
  if (location.layout) return ptkit::api::c::fail_config("code: it lies as it is; only images have a layout");
  const std::uint64_t address = *location.address;
  if (!code.empty() && address + (code.size() - 1) < address)
    return ptkit::api::c::fail_config("code: it does not fit between its address and the last one");
  for (const ptkit::trace::SpaceId space : spaces_of(code_, location)) {
    ptkit::trace::CodeRegion region;
    region.space = space;
    region.address = address;
    region.bytes = ptkit::trace::TraceBuffer(code, nullptr);
    region.size = code.size();
    code_.code.push_back(std::move(region));
  }
  code_is_new_ = true;
  return PTKIT_OK;
}

void ptkit_coverage::forget(std::uint64_t first, std::uint64_t last) { decoder_.forget(first, last); }

int ptkit_coverage::decode(std::span<const Bytes> chunks, std::uint8_t* hits, std::uint8_t* virgin,
                           ptkit_outcome* outcome) {
  if (outcome != nullptr) {
    if (const auto failure = ptkit::api::c::check_size(outcome->size, "outcome"))
      return ptkit::api::c::fail(*failure);
  }
  if (code_is_new_) decoder_.set_bundle(std::make_shared<const TraceBundle>(code_));
  code_is_new_ = callback_threw_ = false;
  ptkit::tables::coverage::Maps maps;
  if (hits != nullptr) maps.hits = {hits, settings_.map_size};
  if (virgin != nullptr) maps.virgin = {virgin, settings_.map_size};
  const auto result = decoder_.decode(decoder_.join(chunks), maps);
  if (!result.ok()) return ptkit::api::c::fail(result.failure());
  if (callback_threw_) return ptkit::api::c::fail(PTKIT_INTERNAL, "read_code threw a C++ exception");
  if (outcome != nullptr) ptkit::api::c::write_outcome(describe(result.value()), *outcome);
  return PTKIT_OK;
}

ptkit_outcome ptkit_coverage::describe(const Outcome& result) const noexcept {
  ptkit_outcome out{};
  out.bytes = result.bytes;
  out.instructions = result.instructions;
  out.branches = result.branches;
  out.edges = result.edges;
  out.new_edges = result.new_edges;
  out.errors = result.errors;
  out.gaps = result.gaps;
  out.new_bits = static_cast<std::int32_t>(result.news);
  if (decoder_.errors().empty()) return out;
  const ptkit::flow::FlowError& error = decoder_.errors().front().error;
  out.first_error = static_cast<std::int32_t>(error.code);
  out.first_error_offset = error.span.offset;
  out.first_error_ip = error.ip_known ? error.ip : 0;
  return out;
}
