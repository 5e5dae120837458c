// Writes timelines of calls in formats of other programs. Chunks go to a Python function.
#include <exception>
#include <map>
#include <optional>
#include <string>

#include "api/python/bindings.h"
#include "api/python/calls/timeline_handle.h"
#include "api/python/long_calls.h"
#include "tables/calls/timeline_files/timeline_files.h"

namespace ptkit::api::python {
namespace {

using tables::calls::ByteSink;
using tables::calls::CallTimeline;
using tables::calls::TimelineFacts;
using Texts = std::pair<std::string, std::string>;

using Write = bool (*)(const CallTimeline&, const TimelineFacts&, ByteSink&);
const std::map<std::string, Write>& formats() {
  static const std::map<std::string, Write> kFormats = {{"perfetto", &tables::calls::write_perfetto},
                                                        {"fxt", &tables::calls::write_fxt},
                                                        {"chrome", &tables::calls::write_chrome},
                                                        {"speedscope", &tables::calls::write_speedscope}};
  return kFormats;
}

// Gives chunks to a function of Python, or only counts them.
class ChunkTaker {
 public:
  explicit ChunkTaker(const py::object& take) : take_(take) {}

  [[nodiscard]] bool operator()(std::string_view chunk) {
    const py::gil_scoped_acquire gil;
    try {
      check_signals();
      if (!take_.is_none())
        take_(py::memoryview::from_memory(chunk.data(), static_cast<py::ssize_t>(chunk.size())));
    } catch (...) {
      raised_ = std::current_exception();
      return false;
    }
    return true;
  }
  // With the GIL.
  void rethrow() const {
    if (raised_) std::rethrow_exception(raised_);
  }

 private:
  const py::object& take_;
  std::exception_ptr raised_;
};

std::uint64_t write_timeline(TimelineHandle& handle, const std::string& format, const Session& session,
                             std::optional<std::uint64_t> first_tsc,
                             const std::vector<std::tuple<std::string, std::string, std::string>>& functions,
                             const std::vector<Texts>& threads, const std::vector<Texts>& notes,
                             std::optional<std::size_t> most_rates, const py::object& take) {
  const auto write = formats().find(format);
  if (write == formats().end()) throw py::value_error("no such format of timelines: " + format);
  const ExclusiveUse use(handle.busy, kTimelineInUse);
  if (threads.size() != handle.timeline->tracks().size())
    throw py::value_error("threads: one for each track");
  TimelineFacts facts;
  for (const auto& [shown, full, file] : functions) facts.functions.push_back({shown, full, file});
  for (const auto& [process, thread] : threads) facts.threads.push_back({process, thread});
  facts.notes = notes;
  if (most_rates) facts.most_rates = *most_rates;
  if (first_tsc) facts.positions = {session.bundle->configuration.clock, *first_tsc};
  ChunkTaker taker(take);
  ByteSink sink([&](std::string_view chunk) { return taker(chunk); });
  bool is_whole = false;
  {
    const py::gil_scoped_release release;
    is_whole = write->second(*handle.timeline, facts, sink);
  }
  taker.rethrow();
  if (!is_whole) throw std::runtime_error("the timeline was not written");
  return sink.bytes();
}

}  // namespace

void register_timeline_files(py::module_& module) {
  module.def(
      "write_timeline", &write_timeline, py::arg("timeline"), py::arg("format"), py::kw_only(),
      py::arg("session"), py::arg("first_tsc"), py::arg("functions"), py::arg("threads"), py::arg("notes"),
      py::arg("most_rates") = py::none(), py::arg("take") = py::none(),
      "Gives the file to `take` in chunks of about a MiB; None: only counts its bytes, which it returns. "
      "`first_tsc`: positions are times from this tick on; None: instructions. `functions`: (shown name, "
      "full name, file) by number. `threads`: (process, thread) of each track. `most_rates`: points of "
      "the counter of each track.");
}

}  // namespace ptkit::api::python
