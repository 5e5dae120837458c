// A recording as plain fields: what decoders use of a bundle, for machines that have no readers of formats.
#pragma once

#include "base/fields.h"
#include "trace/bundle.h"

namespace ptkit::portable {

// `Fields` is a base::FieldWriter or a base::FieldReader.
template <typename Fields>
void describe(Fields& fields, trace::TraceBuffer& buffer) {
  const base::Bytes bytes = buffer.bytes();
  std::string text(bytes.begin(), bytes.end());
  fields.text(text);
  if constexpr (std::is_same_v<Fields, base::FieldReader>)
    buffer = trace::TraceBuffer::from_vector({text.begin(), text.end()});
}

template <typename Fields>
void describe(Fields& fields, trace::Configuration& configuration) {
  trace::Cpu& cpu = configuration.cpu;
  fields(cpu.known), fields(cpu.intel), fields(cpu.family), fields(cpu.model), fields(cpu.stepping);
  trace::Clock& clock = configuration.clock;
  fields(clock.tsc_ctc_numerator), fields(clock.tsc_ctc_denominator);
  fields(clock.mtc_period_known), fields(clock.mtc_period), fields(clock.max_nonturbo_ratio);
  fields(clock.tsc_hz), fields(clock.perf_time_known), fields(clock.time_shift), fields(clock.time_mult);
  fields(clock.time_zero), fields(clock.time_cycles), fields(clock.time_mask);
  fields(configuration.ip_payloads), fields(configuration.cs_base);
  for (trace::AddressRange& range : configuration.ranges)
    fields(range.kind), fields(range.first), fields(range.last);
  fields(configuration.rtit_ctl), fields(configuration.rtit_ctl_known);
}

template <typename Fields>
void describe(Fields& fields, trace::Stream& stream) {
  fields(stream.kind), fields.text(stream.name);
  fields(stream.cpu), fields(stream.pid), fields(stream.tid), fields(stream.space);
  describe(fields, stream.data);
  base::list_fields(fields, stream.switches, [&](trace::Switch& one) {
    fields(one.tsc), fields(one.pid), fields(one.tid), fields(one.space), fields(one.offset);
  });
  fields(stream.switches_by_offset);
  base::list_fields(fields, stream.losses, [&](trace::KnownLoss& one) {
    fields(one.offset), fields(one.cause), fields(one.lost_bytes);
  });
}

template <typename Fields>
void describe(Fields& fields, trace::CodeRegion& region) {
  fields(region.space), fields(region.address), fields(region.size);
  describe(fields, region.bytes);
  fields(region.tsc_from), fields(region.tsc_to), fields(region.file), fields(region.file_offset);
  fields(region.shared);
}

// Files have names only: regions have their bytes.
template <typename Fields>
void describe(Fields& fields, trace::TraceBundle& bundle) {
  describe(fields, bundle.configuration);
  base::list_fields(fields, bundle.spaces, [&](trace::Space& space) {
    fields(space.pid), fields(space.cr3), fields(space.cr3_known), fields(space.user_cr3);
  });
  base::list_fields(fields, bundle.streams, [&](trace::Stream& stream) { describe(fields, stream); });
  base::list_fields(fields, bundle.files, [&](trace::ImageFile& file) { fields.text(file.path); });
  base::list_fields(fields, bundle.code, [&](trace::CodeRegion& region) { describe(fields, region); });
}

}  // namespace ptkit::portable
