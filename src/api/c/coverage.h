// The handle of the C library: code that grows, and a decoder of it.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>

#include "api/c/options.h"
#include "ptkit.h"
#include "tables/coverage/coverage.h"
#include "trace/bundle.h"

// Named in ptkit.h. Its functions may throw.
struct ptkit_coverage {
 public:
  explicit ptkit_coverage(const ptkit::api::c::Settings& settings);
  ptkit_coverage(const ptkit_coverage&) = delete;
  ptkit_coverage& operator=(const ptkit_coverage&) = delete;

  // Each returns a status.
  int add_image(const std::string& path, const ptkit::api::c::LoadLocation& location);
  int add_code(ptkit::base::Bytes code, const ptkit::api::c::LoadLocation& location);
  int decode(std::span<const ptkit::base::Bytes> chunks, std::uint8_t* hits, std::uint8_t* virgin,
             ptkit_outcome* outcome);
  void forget(std::uint64_t first, std::uint64_t last);

  [[nodiscard]] const ptkit::tables::coverage::CoverageDecoder& decoder() const noexcept { return decoder_; }

  std::atomic<bool> busy{false};

 private:
  [[nodiscard]] ptkit::code::image::ReadCallback read_callback();
  [[nodiscard]] ptkit_outcome describe(const ptkit::tables::coverage::Outcome& result) const noexcept;

  ptkit::api::c::Settings settings_;
  ptkit::trace::TraceBundle code_;  // the decoder has a copy
  bool code_is_new_ = false;        // the decoder's copy is older
  bool callback_threw_ = false;
  ptkit::tables::coverage::CoverageDecoder decoder_;
};
