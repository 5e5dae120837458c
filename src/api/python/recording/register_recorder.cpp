// The recorder of all back ends with its arguments and its result, and the table of its options.
#include <array>
#include <atomic>
#include <chrono>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "api/python/bindings.h"
#include "api/python/text.h"
#include "capture/common/record_options.h"
#include "capture/common/recorder.h"

namespace ptkit::api::python {
namespace {

// ---- filters and triggers from Python's tuples

template <typename T, std::size_t N>
T named(const char* option, const std::string& name, const std::array<std::pair<const char*, T>, N>& values) {
  std::string names;
  for (const auto& [text, value] : values) {
    if (name == text) return value;
    names += (names.empty() ? "" : ", ") + std::string(text);
  }
  throw py::value_error(std::string(option) + ": expected one of " + names + ", found " + name);
}

using FilterTuple = std::tuple<std::string, std::string, std::string, std::uint64_t, std::uint64_t>;
using TriggerTuple =
    std::tuple<std::string, std::string, std::string, std::string, std::uint64_t, int, std::uint64_t>;

// The IDs of a user and a group.
using OwnerTuple = std::tuple<std::uint32_t, std::uint32_t>;

base::Owner owner_of(const OwnerTuple& given) { return {std::get<0>(given), std::get<1>(given)}; }

capture::FilterRequest filter_of(const FilterTuple& given) {
  using Kind = capture::FilterRequest::Kind;
  constexpr std::array<std::pair<const char*, Kind>, 4> kKinds{{{"filter", Kind::FILTER},
                                                                {"tracestop", Kind::TRACESTOP},
                                                                {"start", Kind::START},
                                                                {"stop", Kind::STOP}}};
  const auto& [kind, file, symbol, first, last] = given;
  return {named("filters", kind, kKinds), file, symbol, first, last};
}

capture::TriggerRequest trigger_of(const TriggerTuple& given) {
  using Event = capture::TriggerRequest::Event;
  using Action = capture::TriggerRequest::Action;
  constexpr std::array<std::pair<const char*, Event>, 3> kEvents{
      {{"symbol", Event::SYMBOL}, {"address", Event::ADDRESS}, {"signal", Event::SIGNAL}}};
  constexpr std::array<std::pair<const char*, Action>, 3> kActions{
      {{"start", Action::START}, {"stop", Action::STOP}, {"snapshot", Action::SNAPSHOT}}};
  const auto& [event, action, file, symbol, address, signal, count] = given;
  return {named("triggers", event, kEvents),
          named("triggers", action, kActions),
          file,
          symbol,
          address,
          signal,
          count};
}

// ---- options

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

// Keyword arguments are the options of record_options.def, and `backend`, `argv`, `output`, `qemu`, `plugin`;
// for tests `truth` and `transfers`. Raises TypeError for others.
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

// Timing packets and MTCFreq that a back end uses if they are not given.
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

// The rows of record_options.def as dictionaries.
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

// All functions but run() may be called while it runs, from any thread.
class BoundRecorder {
 public:
  explicit BoundRecorder(const py::kwargs& given)
      : recorder_(value_or_raise(capture::make_recorder(options_of(given)))) {}

  py::dict run() {
    if (ran_.exchange(true)) throw std::runtime_error("this recorder has run; make a new one");
    auto result = [&] {
      const py::gil_scoped_release release;
      return recorder_->run();
    }();
    return to_dict(value_or_raise(std::move(result)));
  }
  void stop() { recorder_->stop(); }
  template <capture::Recorder::Problem (capture::Recorder::*kRequest)()>
  void request() {
    if (const auto failure = (recorder_.get()->*kRequest)()) raise_failure(*failure);
  }
  [[nodiscard]] py::tuple status() const {
    const capture::RecordStatus now = recorder_->status();
    return py::make_tuple(now.pid, now.started, now.instructions, now.trace_bytes);
  }

 private:
  std::unique_ptr<capture::Recorder> recorder_;
  std::atomic<bool> ran_{false};
};

}  // namespace

void register_recorder(py::module_& module) {
  using capture::Recorder;
  module.def("record_options", &record_options,
             "The options of recordings: a dictionary for each, with the columns of record_options.def.");
  module.def("default_timing", &default_timing, py::arg("backend"),
             "Timing packets and MTC period that a back end uses if they are not given.");
  py::class_<BoundRecorder>(module, "Recorder", "Records with the back end `backend`, and writes a bundle.")
      .def(py::init<const py::kwargs&>())
      .def("run", &BoundRecorder::run, "Blocks until the recording has ended; returns its result. Once only.")
      .def("stop", &BoundRecorder::stop, "Ends the recording: a program that it started is interrupted.")
      .def("detach", &BoundRecorder::request<&Recorder::detach>, "Ends the recording; the process runs on.")
      .def("snapshot", &BoundRecorder::request<&Recorder::snapshot>, "Writes the rings to the bundle.")
      .def("pause", &BoundRecorder::request<&Recorder::pause>, "Records nothing until `resume`.")
      .def("resume", &BoundRecorder::request<&Recorder::resume>, "Continues after `pause`.")
      .def("status", &BoundRecorder::status,
           "pid (0: none, or not started), whether recording has started, instructions and bytes of trace so "
           "far (0: not known).");
}

}  // namespace ptkit::api::python
