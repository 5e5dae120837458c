#include "api/python/reader_input.h"

#include <optional>
#include <utility>

#include "api/python/engines.h"
#include "api/python/long_calls.h"

namespace ptkit::api::python {
namespace {

void check_stream(const trace::TraceBundle& bundle, std::uint32_t stream, const std::string& engine) {
  if (stream >= bundle.streams.size()) throw py::index_error("no such stream");
  if (engine != "libipt" || bundle.streams[stream].kind == trace::StreamKind::PROCESSOR_TRACE) return;
  raise_failure({base::Status::UNSUPPORTED, 0,
                 "stream " + std::to_string(stream) +
                     " has branch records: libipt decodes Processor Trace only; use engine=\"ptkit\""});
}

}  // namespace

tables::columns::TableReader::Input reader_input(std::shared_ptr<Session> session, ReadOptions options) {
  for (const auto stream : options.streams) {
    check_stream(*session->bundle, stream, options.engine);
    prepare_stream(session->bundle->streams[stream]);
  }
  flow::FlowOptions flow;
  flow.resync = options.resync == "psb" ? flow::Resync::PSB : flow::Resync::IP;
  flow.errata = packet::errata_for(session->bundle->configuration.cpu);
  flow.ticks = options.ticks;
  flow.watch_filter = true;
  tables::columns::TableReader::Input input;
  input.bundle = session->bundle;
  input.streams = std::move(options.streams);
  input.errata = flow.errata;
  input.factory = make_factory(options.engine, session, flow);
  input.decoder = make_decoder_factory(options.engine, session, flow);
  input.threads = options.threads;
  input.go_on = SignalWatch();
  input.decoded = session->decoded;
  input.cut = options.engine == "ptkit";
  if (!options.ticks) input.facts = session->facts;  // with ticks there are more events
  return input;
}

tables::columns::ColumnMask mask_of(tables::columns::TableId table, const std::vector<std::string>& names) {
  tables::columns::ColumnMask mask = 0;
  const auto infos = tables::columns::columns_of(table);
  for (const auto& name : names) {
    for (std::size_t i = 0; i < infos.size(); ++i) {
      if (infos[i].name == name) mask |= tables::columns::ColumnMask{1} << i;
    }
  }
  return mask;
}

tables::columns::Selection selection_of(const py::dict& given) {
  tables::columns::Selection selection;
  const auto has = [&](const char* key) { return given.contains(key) && !given[key].is_none(); };
  if (has("ips")) {
    using Range = std::tuple<std::uint64_t, std::uint64_t, std::optional<trace::SpaceId>>;
    for (const auto& [first, last, space] : given["ips"].cast<std::vector<Range>>()) {
      selection.ips.push_back({first, last, space.value_or(tables::columns::kEverySpace)});
    }
  }
  if (has("pids")) selection.pids = given["pids"].cast<std::vector<std::int64_t>>();
  if (has("tids")) selection.tids = given["tids"].cast<std::vector<std::int64_t>>();
  if (has("spaces")) selection.spaces = given["spaces"].cast<std::vector<trace::SpaceId>>();
  if (has("time")) {
    const auto bounds = given["time"].cast<std::pair<std::uint64_t, std::uint64_t>>();
    selection.by_time = true;
    selection.tsc_begin = bounds.first;
    selection.tsc_end = bounds.second;
  }
  if (has("kinds")) selection.branches.kinds = given["kinds"].cast<std::uint32_t>();
  if (has("event_kinds")) selection.event_kinds = given["event_kinds"].cast<std::uint64_t>();
  if (has("taken")) {
    selection.branches.taken = given["taken"].cast<bool>();
    selection.branches.not_taken = !selection.branches.taken;
  }
  return selection;
}

}  // namespace ptkit::api::python
