#include "formats/ptk/json.h"

#include <algorithm>
#include <array>
#include <map>

namespace ptkit::formats::ptk {

namespace {

constexpr std::uint64_t kLastStatus = std::max({
#define PT_STATUS(name, value, sentence, remedy) std::uint64_t{value},
#include "base/status.def"
});

// By SidebandKind.
constexpr std::array kSidebandNames{"process", "thread", "exec", "map", "signal", "exit"};

constexpr const char* kRecordsName = "branch_records";  // a stream's kind
constexpr const char* kIpPayloads = "ip_payloads";
// By IpPayloads. UNKNOWN is not written.
constexpr std::array kIpPayloadNames{"", "linear", "effective"};
constexpr const char* kSwitchOffsets = "placed";  // switches of a stream, by offset
constexpr const char* kSwitchOffsetsComplete = "placed_all";

// Paths and names come from the system and may be no UTF-8, which JSON cannot hold.
std::string utf8(const std::string& text) {
  const Json value(text);
  const std::string dumped = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  const Json clean = Json::parse(dumped, nullptr, false);
  return clean.is_string() ? clean.get<std::string>() : std::string();
}

void add_id(Json& object, const char* name, std::int64_t id) {
  if (id != trace::kNoId) object[name] = id;
}

void read_id(const JsonReader::Member& member, std::int64_t& out) {
  if (member.present()) out = member.signed_number();
}

template <typename T>
void read_number(const JsonReader::Member& member, T& out) {
  if (member.present()) out = static_cast<T>(member.number(std::numeric_limits<T>::max()));
}

Json to_json(const trace::Switch& one, bool by_offset) {
  Json record = {{"space", one.space}};
  if (by_offset) record["offset"] = one.offset;
  if (!by_offset || one.tsc != trace::kTscMin) record["tsc"] = one.tsc;
  add_id(record, "pid", one.pid);
  add_id(record, "tid", one.tid);
  if (one.departure != trace::Departure::UNKNOWN) record["departure"] = static_cast<unsigned>(one.departure);
  return record;
}

void read_switches(const JsonReader::Member& list, std::vector<trace::Switch>& out) {
  for (std::size_t i = 0; list.present() && i < list.size(); ++i) {
    const auto record = list.at(i);
    trace::Switch one;
    read_number(record["tsc"], one.tsc);
    read_number(record["offset"], one.offset);
    read_number(record["space"], one.space);
    read_id(record["pid"], one.pid);
    read_id(record["tid"], one.tid);
    const auto departure = record["departure"];
    if (departure.present()) {
      one.departure =
          static_cast<trace::Departure>(departure.number(static_cast<unsigned>(trace::Departure::PREEMPTED)));
    }
    out.push_back(one);
  }
}

Json clock_json(const trace::Clock& clock) {
  Json object = {{"tsc_ctc_numerator", clock.tsc_ctc_numerator},
                 {"tsc_ctc_denominator", clock.tsc_ctc_denominator},
                 {"max_nonturbo_ratio", clock.max_nonturbo_ratio},
                 {"tsc_hz", clock.tsc_hz}};
  if (clock.mtc_period_known) object["mtc_period"] = clock.mtc_period;
  if (clock.perf_time_known) {
    object["time_shift"] = clock.time_shift;
    object["time_mult"] = clock.time_mult;
    object["time_zero"] = clock.time_zero;
    if (clock.time_mask != 0) {
      object["time_cycles"] = clock.time_cycles;
      object["time_mask"] = clock.time_mask;
    }
  }
  return object;
}

void read_clock(const JsonReader::Member& object, trace::Clock& clock) {
  object.expect_object();
  read_number(object["tsc_ctc_numerator"], clock.tsc_ctc_numerator);
  read_number(object["tsc_ctc_denominator"], clock.tsc_ctc_denominator);
  read_number(object["max_nonturbo_ratio"], clock.max_nonturbo_ratio);
  read_number(object["tsc_hz"], clock.tsc_hz);
  if (object["mtc_period"].present()) {
    clock.mtc_period = static_cast<std::uint8_t>(object["mtc_period"].number(15));
    clock.mtc_period_known = true;
  }
  if (!object["time_mult"].present()) return;
  clock.time_mult = static_cast<std::uint32_t>(object["time_mult"].number(0xffffffff));
  clock.time_shift = static_cast<std::uint16_t>(object["time_shift"].number(63));
  clock.time_zero = object["time_zero"].number();
  read_number(object["time_cycles"], clock.time_cycles);
  read_number(object["time_mask"], clock.time_mask);
  clock.perf_time_known = clock.time_mult != 0;
  if (clock.time_mult == 0) object["time_mult"].fail("expected a number above 0");
}

trace::IpPayloads read_ip_payloads(const JsonReader::Member& member) {
  const std::string name = member.text();
  for (const auto payloads : {trace::IpPayloads::LINEAR, trace::IpPayloads::EFFECTIVE}) {
    if (name == kIpPayloadNames[static_cast<std::size_t>(payloads)]) return payloads;
  }
  member.fail("expected \"linear\" or \"effective\"");
  return trace::IpPayloads::UNKNOWN;
}

void read_range(const JsonReader::Member& range, trace::AddressRange& target) {
  target.kind = static_cast<trace::RangeKind>(range["kind"].number(2));
  target.first = range["first"].number();
  target.last = range["last"].number();
}

// Decoders compare addresses with each range.
void read_space_ranges(const JsonReader::Member& ranges, std::vector<trace::SpaceRange>& out) {
  constexpr std::size_t kMostOfSpace = 128;
  std::map<trace::SpaceId, std::size_t> counts;
  for (std::size_t i = 0; ranges.present() && i < ranges.size(); ++i) {
    trace::SpaceRange one;
    read_number(ranges.at(i)["space"], one.space);
    read_range(ranges.at(i), one.range);
    if (++counts[one.space] > kMostOfSpace) ranges.fail("too many ranges of one address space");
    out.push_back(one);
  }
}

}  // namespace

Json to_json(const trace::Configuration& configuration) {
  Json object = Json::object();
  const trace::Cpu& cpu = configuration.cpu;
  if (cpu.known) {
    object["cpu"] = {
        {"intel", cpu.intel}, {"family", cpu.family}, {"model", cpu.model}, {"stepping", cpu.stepping}};
  }
  object["clock"] = clock_json(configuration.clock);
  if (configuration.rtit_ctl_known) object["rtit_ctl"] = configuration.rtit_ctl;
  if (configuration.ip_payloads != trace::IpPayloads::UNKNOWN)
    object[kIpPayloads] = kIpPayloadNames[static_cast<std::size_t>(configuration.ip_payloads)];
  Json ranges = Json::array();
  for (std::size_t i = 0; i < configuration.ranges.size(); ++i) {
    const trace::AddressRange& range = configuration.ranges[i];
    if (range.kind == trace::RangeKind::OFF) continue;
    ranges.push_back({{"index", i},
                      {"kind", static_cast<unsigned>(range.kind)},
                      {"first", range.first},
                      {"last", range.last}});
  }
  if (!ranges.empty()) object["ranges"] = std::move(ranges);
  for (const trace::SpaceRange& one : configuration.space_ranges) {
    object["space_ranges"].push_back({{"space", one.space},
                                      {"kind", static_cast<unsigned>(one.range.kind)},
                                      {"first", one.range.first},
                                      {"last", one.range.last}});
  }
  if (configuration.ranges_known) object["ranges_known"] = true;
  return object;
}

Json to_json(std::uint32_t id, const trace::Space& space) {
  Json object = {{"id", id}};
  add_id(object, "pid", space.pid);
  if (space.cr3_known) object["cr3"] = space.cr3;
  if (space.user_cr3 != 0) object["user_cr3"] = space.user_cr3;
  return object;
}

Json to_json(std::uint32_t id, const trace::Stream& stream) {
  Json object = {{"id", id}, {"name", utf8(stream.name)}, {"space", stream.space}};
  if (stream.kind == trace::StreamKind::BRANCH_RECORDS) object["kind"] = kRecordsName;
  add_id(object, "cpu", stream.cpu);
  add_id(object, "pid", stream.pid);
  add_id(object, "tid", stream.tid);
  if (stream.switches_by_offset) object["switches_by_offset"] = true;
  for (const trace::Switch& one : stream.switches)
    object["switches"].push_back(to_json(one, stream.switches_by_offset));
  for (const trace::KnownLoss& loss : stream.losses) object["losses"].push_back(to_json(loss));
  return object;
}

Json switch_offsets_to_json(std::span<const trace::Switch> switches) {
  Json object = {{kSwitchOffsets, Json::array()}};
  for (const trace::Switch& one : switches) object[kSwitchOffsets].push_back(to_json(one, true));
  return object;
}

Json end_of_switch_offsets() { return {{kSwitchOffsetsComplete, true}}; }

Json to_json(const trace::KnownLoss& loss) {
  return {
      {"offset", loss.offset}, {"cause", static_cast<unsigned>(loss.cause)}, {"lost_bytes", loss.lost_bytes}};
}

Json to_json(std::uint32_t id, const trace::ImageFile& file) {
  return {{"id", id}, {"path", utf8(file.path)}, {"build_id", utf8(file.build_id)}};
}

Json to_json(const trace::Sideband& record) {
  Json object = {{"kind", kSidebandNames[static_cast<std::size_t>(record.kind)]}, {"tsc", record.tsc}};
  add_id(object, "pid", record.pid);
  add_id(object, "tid", record.tid);
  add_id(object, "parent", record.parent);
  if (record.value != 0) object["value"] = record.value;
  if (record.size != 0) {
    object["address"] = record.address;
    object["size"] = record.size;
    object["file_offset"] = record.file_offset;
  }
  if (record.file >= 0) object["file"] = record.file;
  if (!record.text.empty()) object["text"] = utf8(record.text);
  return object;
}

void check_recorder(const JsonReader::Member& meta) {
  for (const char* const name : {"backend", "machine", "failed"}) {
    if (const auto member = meta[name]; member.present()) static_cast<void>(member.text());
  }
  for (const char* const name : {"begin_ns", "end_ns", "flushed_ns", "failed_ns", "instructions"}) {
    if (const auto member = meta[name]; member.present())
      static_cast<void>(member.number(std::numeric_limits<std::int64_t>::max()));
  }
  for (const char* const name : {"redacted", "program"}) static_cast<void>(meta[name].flag(false));
  if (const auto status = meta["exit_status"]; status.present()) static_cast<void>(status.signed_number());
  const auto command = meta["command"];
  for (std::size_t i = 0; command.present() && i < command.size(); ++i)
    static_cast<void>(command.at(i).text());
}

void from_json(const JsonReader::Member& meta, trace::Configuration& out) {
  meta.expect_object();
  if (const auto cpu = meta["cpu"]; cpu.present()) {
    cpu.expect_object();
    read_number(cpu["family"], out.cpu.family);
    read_number(cpu["model"], out.cpu.model);
    read_number(cpu["stepping"], out.cpu.stepping);
    out.cpu.intel = cpu["intel"].flag(true);
    out.cpu.known = true;
  }
  if (meta["clock"].present()) read_clock(meta["clock"], out.clock);
  if (meta["rtit_ctl"].present()) {
    out.rtit_ctl = meta["rtit_ctl"].number();
    out.rtit_ctl_known = true;
  }
  if (meta[kIpPayloads].present()) out.ip_payloads = read_ip_payloads(meta[kIpPayloads]);
  out.ranges_known = meta["ranges_known"].flag(false);
  const auto ranges = meta["ranges"];
  for (std::size_t i = 0; ranges.present() && i < ranges.size(); ++i) {
    const auto range = ranges.at(i);
    read_range(range, out.ranges[range["index"].number(out.ranges.size() - 1)]);
  }
  read_space_ranges(meta["space_ranges"], out.space_ranges);
}

void from_json(const JsonReader::Member& object, trace::Space& out) {
  read_id(object["pid"], out.pid);
  out.cr3_known = object["cr3"].present();
  if (out.cr3_known) out.cr3 = object["cr3"].number();
  if (object["user_cr3"].present()) out.user_cr3 = object["user_cr3"].number();
}

void from_json(const JsonReader::Member& object, trace::Stream& out) {
  if (const auto kind = object["kind"]; kind.present()) {
    if (kind.text() != kRecordsName)
      kind.fail("expected \"branch_records\"; a newer ptkit may know streams of another kind");
    out.kind = trace::StreamKind::BRANCH_RECORDS;
  }
  if (object["name"].present()) out.name = object["name"].text();
  read_number(object["space"], out.space);
  read_id(object["cpu"], out.cpu);
  read_id(object["pid"], out.pid);
  read_id(object["tid"], out.tid);
  // A later STREAM chunk may add members and leave this one out.
  out.switches_by_offset = object["switches_by_offset"].flag(out.switches_by_offset);
  read_switches(object["switches"], out.switches);
  const auto losses = object["losses"];
  for (std::size_t i = 0; losses.present() && i < losses.size(); ++i) {
    trace::KnownLoss loss;
    read_number(losses.at(i)["offset"], loss.offset);
    read_number(losses.at(i)["lost_bytes"], loss.lost_bytes);
    loss.cause = static_cast<base::Status>(losses.at(i)["cause"].number(kLastStatus));
    out.losses.push_back(loss);
  }
}

void from_json(const JsonReader::Member& object, SwitchOffsets& out) {
  read_switches(object[kSwitchOffsets], out.switches);
  out.whole = object[kSwitchOffsetsComplete].flag(out.whole);
}

void from_json(const JsonReader::Member& object, trace::ImageFile& out) {
  out.path = object["path"].text();
  if (object["build_id"].present()) out.build_id = object["build_id"].text();
}

bool from_json(const JsonReader::Member& object, trace::Sideband& out) {
  object.expect_object();
  const std::string kind = object["kind"].text();
  std::size_t index = 0;
  while (index < kSidebandNames.size() && kind != kSidebandNames[index]) ++index;
  if (index == kSidebandNames.size()) return false;
  out.kind = static_cast<trace::SidebandKind>(index);
  read_number(object["tsc"], out.tsc);
  read_id(object["pid"], out.pid);
  read_id(object["tid"], out.tid);
  read_id(object["parent"], out.parent);
  read_id(object["value"], out.value);
  read_number(object["address"], out.address);
  read_number(object["size"], out.size);
  read_number(object["file_offset"], out.file_offset);
  read_number(object["file"], out.file);
  if (object["text"].present()) out.text = object["text"].text();
  return true;
}

}  // namespace ptkit::formats::ptk
