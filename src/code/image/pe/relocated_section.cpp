#include "code/image/pe/relocated_section.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

namespace ptkit::code::image {
namespace {

// Copies and relocates a section at its first use.
class RelocatedSection final : public trace::ByteSource {
 public:
  RelocatedSection(trace::TraceBuffer section, trace::TraceBuffer file,
                   std::shared_ptr<const PeRelocations> relocations, std::uint64_t delta, std::uint32_t rva)
      : section_(std::move(section)),
        file_(std::move(file)),
        relocations_(std::move(relocations)),
        delta_(delta),
        rva_(rva),
        bytes_(std::make_unique_for_overwrite<std::uint8_t[]>(section_.size())) {}

  [[nodiscard]] base::Bytes bytes() const noexcept { return {bytes_.get(), section_.size()}; }
  void need(std::size_t /*begin*/, std::size_t /*end*/) noexcept override {
    std::call_once(once_, [this] {
      std::ranges::copy(section_.bytes(), bytes_.get());
      relocations_->apply(delta_, rva_, {bytes_.get(), section_.size()});
    });
  }
  [[nodiscard]] std::optional<trace::TraceBuffer> again() const override { return std::nullopt; }
  void forget_before(std::size_t /*end*/) noexcept override {}

 private:
  trace::TraceBuffer section_;
  trace::TraceBuffer file_;
  std::shared_ptr<const PeRelocations> relocations_;
  std::uint64_t delta_;
  std::uint32_t rva_;
  std::unique_ptr<std::uint8_t[]> bytes_;
  std::once_flag once_;
};

}  // namespace

trace::TraceBuffer relocated(const trace::TraceBuffer& section, const trace::TraceBuffer& file,
                             std::shared_ptr<const PeRelocations> relocations, std::uint64_t delta,
                             std::uint32_t rva) {
  auto source = std::make_shared<RelocatedSection>(section, file, std::move(relocations), delta, rva);
  const base::Bytes bytes = source->bytes();
  return trace::TraceBuffer::from_source(bytes, std::move(source));
}

}  // namespace ptkit::code::image
