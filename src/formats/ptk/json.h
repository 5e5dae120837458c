// Converts the JSON objects of .ptk chunks in both directions. For .cpp files of this folder only.
#pragma once

#include <span>

#include "formats/common/json.h"
#include "trace/bundle.h"

namespace ptkit::formats::ptk {

[[nodiscard]] Json to_json(const trace::Configuration& configuration);  // members of META
[[nodiscard]] Json to_json(std::uint32_t id, const trace::Space& space);
[[nodiscard]] Json to_json(std::uint32_t id, const trace::Stream& stream);
[[nodiscard]] Json to_json(std::uint32_t id, const trace::ImageFile& file);
[[nodiscard]] Json to_json(const trace::Sideband& record);
[[nodiscard]] Json to_json(const trace::KnownLoss& loss);

// Stream offsets of context switches that were recorded by time. Several STREAM chunks hold them. `whole`:
// the last chunk was read.
struct SwitchOffsets {
  std::vector<trace::Switch> switches;
  bool whole = false;
};
[[nodiscard]] Json switch_offsets_to_json(std::span<const trace::Switch> switches);
[[nodiscard]] Json end_of_switch_offsets();

// Reports members of META that describe the recording and have a wrong type.
void check_recorder(const JsonReader::Member& meta);

// Each reads the members that are present and keeps other values. Failures go to the member's reader.
void from_json(const JsonReader::Member& meta, trace::Configuration& out);
void from_json(const JsonReader::Member& object, trace::Space& out);
void from_json(const JsonReader::Member& object, trace::Stream& out);
void from_json(const JsonReader::Member& object, SwitchOffsets& out);  // appends
void from_json(const JsonReader::Member& object, trace::ImageFile& out);
// Returns false for a record of an unknown kind.
[[nodiscard]] bool from_json(const JsonReader::Member& object, trace::Sideband& out);

}  // namespace ptkit::formats::ptk
