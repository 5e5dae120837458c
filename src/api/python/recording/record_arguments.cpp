#include "api/python/recording/record_arguments.h"

#include <array>
#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/python/recording/record_tuples.h"
#include "api/python/text.h"

namespace ptkit::api::python {

namespace {

// A set of names, from a sequence of them.
template <typename Names>
Names names_from(const char* option, const py::object& given) {
  Names out = capture::no_names<Names>();
  for (const auto& name : py::cast<std::vector<std::string>>(given)) {
    if (!capture::add_name(out, name)) {
      throw py::value_error(std::string(option) + ": expected any of " + capture::all_names<Names>() +
                            ", found " + name);
    }
  }
  return out;
}

template <typename T>
void convert(const char* /*option*/, const py::object& given, T& out) {
  out = py::cast<T>(given);
}
void convert(const char* /*option*/, const py::object& given, std::chrono::milliseconds& out) {
  out = std::chrono::milliseconds(py::cast<std::uint64_t>(given));
}
void convert(const char* option, const py::object& given, capture::Levels& out) {
  out = named(option, py::cast<std::string>(given), capture::kLevels);
}
void convert(const char* option, const py::object& given, std::optional<capture::TimingPackets>& out) {
  out = names_from<capture::TimingPackets>(option, given);
}
void convert(const char* option, const py::object& given, capture::MorePackets& out) {
  out = names_from<capture::MorePackets>(option, given);
}
void convert(const char* /*option*/, const py::object& given, capture::Cpus& out) {
  out.all = py::isinstance<py::str>(given);
  if (!out.all) out.numbers = py::cast<std::vector<std::uint32_t>>(given);
}
void convert(const char* /*option*/, const py::object& given, std::optional<base::Owner>& out) {
  out = owner_of(py::cast<OwnerTuple>(given));
}
void convert(const char* /*option*/, const py::object& given, std::vector<capture::FilterRequest>& out) {
  for (const auto& one : py::cast<std::vector<FilterTuple>>(given)) out.push_back(filter_of(one));
}
void convert(const char* /*option*/, const py::object& given, std::vector<capture::TriggerRequest>& out) {
  for (const auto& one : py::cast<std::vector<TriggerTuple>>(given)) out.push_back(trigger_of(one));
}

capture::Backend backend_of(const std::string& name) {
  for (std::size_t one = 0; one < capture::kBackendNames.size(); ++one) {
    if (name == capture::kBackendNames[one]) return static_cast<capture::Backend>(one);
  }
  throw py::value_error("backend: there is no " + name);
}

// The names that an option takes; empty: it takes no names.
std::string choices(const capture::Levels& /*type*/) {
  std::string out;
  for (const auto& [name, levels] : capture::kLevels) out += (out.empty() ? "" : ",") + std::string(name);
  return out;
}
std::string choices(const std::optional<capture::TimingPackets>& /*type*/) {
  return capture::all_names<capture::TimingPackets>() + ",none";
}
std::string choices(const capture::MorePackets& /*type*/) {
  return capture::all_names<capture::MorePackets>();
}
template <typename T>
std::string choices(const T& /*type*/) {
  return {};
}

py::list names_of_bits(unsigned bits, std::span<const char* const> names) {
  py::list out;
  for (std::size_t one = 0; one < names.size(); ++one) {
    if ((bits >> one & 1U) != 0) out.append(names[one]);
  }
  return out;
}

py::dict row_of(const capture::OptionInfo& info, const std::string& names) {
  constexpr std::array<const char*, 2> kSystems{"Linux", "Windows"};
  py::dict row;
  row["name"] = info.name;
  row["kind"] = capture::kOptionKindNames[static_cast<std::size_t>(info.kind)];
  row["default"] = info.preset;
  row["least"] = info.least;
  row["most"] = info.most;
  row["unit"] = info.unit;
  row["choices"] = names;
  row["back_ends"] = names_of_bits(info.back_ends, capture::kBackendNames);
  row["systems"] = names_of_bits(info.systems, kSystems);
  row["flags"] = info.flags;
  row["metavar"] = info.metavar;
  row["section"] = capture::kSectionNames[static_cast<std::size_t>(capture::section_of(info.section))];
  row["rare"] = capture::is_rare(info.section);
  row["help"] = info.help;
  row["details"] = info.details;
  return row;
}

}  // namespace

capture::RecordOptions options_of(const py::kwargs& given) {
  capture::RecordOptions options;
  std::size_t taken = 0;
  const auto take = [&](const char* name, auto& out) {
    if (!given.contains(name)) return;
    convert(name, py::object(given[name]), out);
    ++taken;
  };
  std::string backend = capture::kBackendNames[static_cast<std::size_t>(options.backend)];
  take("backend", backend);
  options.backend = backend_of(backend);
  take("argv", options.argv);
  take("output", options.output);
  take("qemu", options.qemu);
  take("plugin", options.plugin);
  take("truth", options.truth_folder);
  take("transfers", options.transfers_folder);
  capture::for_each_option(
      options, [&take](const capture::OptionInfo& info, auto& member) { take(info.name.data(), member); });
  if (taken != given.size()) throw py::type_error("recorder: there is no such option");
  return options;
}

py::tuple default_timing(const std::string& backend) {
  capture::RecordOptions options;
  options.backend = backend_of(backend);
  const capture::TimingPackets timing = options.timing_packets();
  py::list names;
  for (const auto& [name, member] : capture::TimingPackets::kNames) {
    if (timing.*member) names.append(name);
  }
  return py::make_tuple(names, options.mtc_freq());
}

py::list record_options() {
  py::list out;
  for (const capture::OptionInfo& info : capture::kCallerOptions) out.append(row_of(info, ""));
  capture::RecordOptions options;
  capture::for_each_option(options, [&out](const capture::OptionInfo& info, const auto& member) {
    out.append(row_of(info, choices(member)));
  });
  return out;
}

py::dict to_dict(const capture::RecordResult& result) {
  py::dict out;
  out["exit_status"] = result.exit_status;
  out["instructions"] = result.instructions;
  out["branches"] = result.branches;
  out["streams"] = result.streams;
  out["trace_bytes"] = result.trace_bytes;
  out["bundle_bytes"] = result.bundle_bytes;
  out["dropped_bytes"] = result.dropped_bytes;
  out["snapshots"] = result.snapshots;
  out["interrupted"] = result.interrupted;
  out["limited"] = result.limited;
  out["unmatched"] = result.unmatched;
  out["warnings"] = python_warnings(result.warnings);
  return out;
}

}  // namespace ptkit::api::python
