#include "common/library.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>

namespace ptkit::bench {
namespace {

// Recorders keep executed code only. Holes are filled with zeros, as libipt searches sections linearly and is
// faster with fewer sections.
constexpr std::uint64_t kLargestHole = 1U << 16U;

}  // namespace

Sections::Sections(const trace::TraceBundle& bundle) {
  std::vector<const trace::CodeRegion*> regions;
  for (const auto& region : bundle.code) {
    if (region.bytes.size() != 0) regions.push_back(&region);  // else: mapped, but not in the recording
  }
  std::sort(regions.begin(), regions.end(),
            [](const auto* a, const auto* b) { return a->address < b->address; });
  for (const auto* region : regions) {
    const base::Bytes bytes = region->bytes.bytes();
    if (runs_.empty() || region->address - runs_.back().address > runs_.back().bytes.size() + kLargestHole) {
      runs_.push_back({region->address, {}, 0});
    }
    Run& run = runs_.back();
    const std::size_t begin = region->address - run.address;
    if (run.bytes.size() < begin + bytes.size()) run.bytes.resize(begin + bytes.size());
    std::copy(bytes.begin(), bytes.end(), run.bytes.begin() + static_cast<std::ptrdiff_t>(begin));
  }
  char pattern[] = "/tmp/ptkit-bench-XXXXXX";
  if (mkdtemp(pattern) == nullptr) return;
  folder_ = pattern;
  cache_ = pt_iscache_alloc(nullptr);
  for (Run& run : runs_) {
    const std::string path = folder_ + "/" + std::to_string(paths_.size());
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(run.bytes.data()),
               static_cast<std::streamsize>(run.bytes.size()));
    paths_.push_back(path);
    run.section = pt_iscache_add_file(cache_, path.c_str(), 0, run.bytes.size(), run.address);
  }
}

Sections::~Sections() {
  if (cache_ != nullptr) pt_iscache_free(cache_);
  for (const auto& path : paths_) unlink(path.c_str());
  if (!folder_.empty()) rmdir(folder_.c_str());
}

bool Sections::add_to(pt_image* image) const {
  return std::all_of(runs_.begin(), runs_.end(), [&](const Run& run) {
    return run.section > 0 && pt_image_add_cached(image, cache_, run.section, nullptr) >= 0;
  });
}

std::size_t Sections::read(std::uint64_t address, std::uint8_t* out, std::size_t size) const {
  for (const Run& run : runs_) {
    if (address < run.address || address - run.address >= run.bytes.size()) continue;
    const std::size_t count = std::min<std::size_t>(size, run.bytes.size() - (address - run.address));
    std::memcpy(out, run.bytes.data() + (address - run.address), count);
    return count;
  }
  return 0;
}

const Sections& sections_of(const trace::TraceBundle& bundle) {
  static const Sections sections(bundle);
  return sections;
}

pt_config library_config(const trace::TraceBundle& bundle) {
  const base::Bytes stream = bundle.streams.front().data.bytes();
  pt_config config;
  pt_config_init(&config);
  config.begin = const_cast<std::uint8_t*>(stream.data());
  config.end = config.begin + stream.size();
  config.errata.bdm70 = 1;
  const trace::Clock& clock = bundle.configuration.clock;
  config.cpuid_0x15_eax = clock.tsc_ctc_denominator;
  config.cpuid_0x15_ebx = clock.tsc_ctc_numerator;
  config.mtc_freq = clock.mtc_period;
  config.nom_freq = clock.max_nonturbo_ratio;
  return config;
}

}  // namespace ptkit::bench
