// Identity of the trace, images and options that an index belongs to.
#include <filesystem>

#include "base/check_sum.h"
#include "base/fields.h"
#include "base/file_path.h"
#include "base/system/file_identity.h"
#include "flow/index/index.h"

namespace ptkit::flow::index {
namespace {

constexpr std::size_t kSamples = 64;
constexpr std::size_t kSampleBytes = 4096;

void put(base::FieldWriter& fields, const std::string& text) {
  fields(text.size());
  fields.bytes().insert(fields.bytes().end(), text.begin(), text.end());
}

void put(base::FieldWriter& fields, const trace::Configuration& configuration) {
  const trace::Cpu& cpu = configuration.cpu;
  fields(cpu.known);
  fields(cpu.intel);
  fields(cpu.family);
  fields(cpu.model);
  fields(cpu.stepping);
  const trace::Clock& clock = configuration.clock;
  fields(clock.tsc_ctc_numerator);
  fields(clock.tsc_ctc_denominator);
  fields(clock.mtc_period_known);
  fields(clock.mtc_period);
  fields(clock.max_nonturbo_ratio);
  fields(clock.tsc_hz);
  for (const trace::AddressRange& range : configuration.ranges) {
    fields(range.kind);
    fields(range.first);
    fields(range.last);
  }
  for (const trace::SpaceRange& one : configuration.space_ranges) {
    fields(one.space);
    fields(one.range.kind);
    fields(one.range.first);
    fields(one.range.last);
  }
  fields(configuration.ranges_known);
  fields(configuration.rtit_ctl);
  fields(configuration.rtit_ctl_known);
  fields(configuration.sync);
  if (configuration.cs_base != 0) fields(configuration.cs_base);
}

void put(base::FieldWriter& fields, const trace::Stream& stream) {
  if (stream.kind != trace::StreamKind::PROCESSOR_TRACE) fields(stream.kind);
  fields(stream.cpu);
  fields(stream.pid);
  fields(stream.tid);
  fields(stream.space);
  fields(stream.data.size());
  fields(stream.switches_by_offset);
  fields(stream.switches.size());
  for (const trace::Switch& one : stream.switches) {
    fields(one.tsc);
    fields(one.pid);
    fields(one.tid);
    fields(one.space);
    fields(one.offset);
  }
  fields(stream.losses.size());
  for (const trace::KnownLoss& loss : stream.losses) {
    fields(loss.offset);
    fields(loss.cause);
    fields(loss.lost_bytes);
  }
}

// A build-id replaces the file's bytes; files without build-id are read.
void put(base::FieldWriter& fields, const trace::TraceBundle& bundle, const trace::CodeRegion& region) {
  fields(region.space);
  fields(region.address);
  fields(region.size);
  fields(region.tsc_from);
  fields(region.tsc_to);
  fields(region.file_offset);
  fields(region.bytes.size());
  const trace::ImageFile* const file = bundle.file(region.file);
  const std::string id = file != nullptr ? file->build_id : "";
  put(fields, id);
  fields(id.empty() ? base::check_sum(region.bytes.bytes()) : sample_of(region.bytes.bytes()));
}

}  // namespace

std::uint64_t sample_of(base::Bytes stream) {
  std::uint64_t sum = stream.size();
  if (stream.size() <= kSamples * kSampleBytes) return base::mix(sum, base::check_sum(stream));
  const std::size_t step = (stream.size() - kSampleBytes) / (kSamples - 1);
  for (std::size_t i = 0; i + 1 < kSamples; ++i)
    sum = base::mix(sum, base::check_sum(stream.subspan(i * step, kSampleBytes)));
  return base::mix(sum, base::check_sum(stream.last(kSampleBytes)));
}

std::uint64_t identity_of(const trace::TraceBundle& bundle, flow::Resync resync) {
  base::FieldWriter fields;
  fields(resync);
  put(fields, bundle.configuration);
  for (const trace::Space& space : bundle.spaces) {
    fields(space.pid);
    fields(space.cr3);
    fields(space.cr3_known);
    if (space.user_cr3 != 0) fields(space.user_cr3);
  }
  fields(bundle.streams.size());
  for (const trace::Stream& stream : bundle.streams) put(fields, stream);
  fields(bundle.code.size());
  for (const trace::CodeRegion& region : bundle.code) put(fields, bundle, region);
  return base::check_sum(fields.bytes());
}

namespace {

Stamp stamp_of_file(const std::string& path) {
  const auto file = base::file_identity(path);
  return file ? Stamp{file->size, file->time_ns} : Stamp{};
}

}  // namespace

Stamp stamp_of(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(base::to_path(path), error)) return stamp_of_file(path);
  // The stamp of a folder covers all its files. The order of directory entries is unspecified, so size and
  // time are combined by commutative operations.
  Stamp all;
  for (std::filesystem::directory_iterator at(base::to_path(path), error), end; !error && at != end;
       at.increment(error)) {
    if (at->is_directory(error)) return {};
    const Stamp one = stamp_of_file(base::to_bytes(at->path()));
    all.size += one.size;
    all.time ^= static_cast<std::int64_t>(base::mix(one.size, static_cast<std::uint64_t>(one.time)));
  }
  return error ? Stamp{} : all;
}

}  // namespace ptkit::flow::index
