// The JSON objects of .ptk chunks, both ways. For .cpp files of this folder only.
#pragma once

#include <span>

#include "formats/json.h"
#include "trace/bundle.h"

namespace ptkit::formats::ptk {

[[nodiscard]] Json to_json(const trace::Configuration& configuration);  // members of META
[[nodiscard]] Json to_json(std::uint32_t id, const trace::Space& space);
[[nodiscard]] Json to_json(std::uint32_t id, const trace::Stream& stream);
[[nodiscard]] Json to_json(std::uint32_t id, const trace::ImageFile& file);
[[nodiscard]] Json to_json(const trace::Sideband& record);
[[nodiscard]] Json to_json(const trace::KnownLoss& loss);

// Switches that a stream has told by time, by place: in parts, and that these were all.
struct Places {
  std::vector<trace::Switch> switches;
  bool whole = false;
};
[[nodiscard]] Json places_to_json(std::span<const trace::Switch> switches);
[[nodiscard]] Json end_of_places();

// Complains about members of META that describe the recording and have another type than they should.
void check_recorder(const JsonReader::Member& meta);

// Each reads what is there and leaves the rest as it is; complaints go to the member's reader.
void from_json(const JsonReader::Member& meta, trace::Configuration& out);
void from_json(const JsonReader::Member& object, trace::Space& out);
void from_json(const JsonReader::Member& object, trace::Stream& out);
void from_json(const JsonReader::Member& object, Places& out);  // adds to what is there
void from_json(const JsonReader::Member& object, trace::ImageFile& out);
[[nodiscard]] bool from_json(const JsonReader::Member& object,
                             trace::Sideband& out);  // false: of a kind that is not known

}  // namespace ptkit::formats::ptk
