#include "formats/ptk_end.h"

#include <chrono>
#include <cstdio>
#include <set>

namespace ptkit::formats::ptk {

namespace {

std::int64_t number(const Json& meta, const char* name) {
  const auto at = meta.find(name);
  return at != meta.end() && at->is_number_integer() ? at->get<std::int64_t>() : 0;
}

// "2026-11-20 19:03:02 UTC".
std::string date(std::int64_t ns) {
  using std::chrono::days;
  using std::chrono::seconds;
  const std::chrono::sys_seconds time{std::chrono::duration_cast<seconds>(std::chrono::nanoseconds{ns})};
  const auto day = std::chrono::floor<days>(time);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss<seconds> clock{time - day};
  char text[64];
  std::snprintf(text, sizeof text, "%04d-%02u-%02u %02d:%02d:%02d UTC", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()));
  return text;
}

// "at 2026-11-20 19:03:02 UTC, 12.5 s after it began".
std::string when(const Json& meta, std::int64_t ns) {
  std::string text = "at ";
  text += date(ns);
  const std::int64_t begin = number(meta, "begin_ns");
  if (begin <= 0 || ns < begin) return text;
  char since[48];
  std::snprintf(since, sizeof since, ", %.1f s after it began", static_cast<double>(ns - begin) / 1e9);
  text += since;
  return text;
}

// Threads that are recorded and whose end is not: "2 of 3 threads".
std::string running_threads(const trace::TraceBundle& bundle) {
  std::set<std::int64_t> running;
  for (const trace::Stream& stream : bundle.streams) running.insert(stream.tid);
  running.erase(trace::kNoId);
  const std::size_t all = running.size();
  for (const trace::Sideband& record : bundle.sideband) {
    if (record.kind == trace::SidebandKind::EXIT) running.erase(record.tid);
  }
  if (running.empty()) return {};
  return std::to_string(running.size()) + " of " + std::to_string(all) + (all == 1 ? " thread" : " threads");
}

std::string first_sentence(const Json& meta, bool finished) {
  const auto failed = meta.find("failed");
  if (failed != meta.end() && failed->is_string()) {
    std::string text = "the recording stopped early (" + failed->get<std::string>() + ")";
    if (const std::int64_t ns = number(meta, "failed_ns"); ns > 0) text.append(" ").append(when(meta, ns));
    return text + "; what came later is missing";
  }
  if (finished) return {};
  std::string text =
      "the recording has no end: the recorder was killed, its disk was full, or the file was cut; ";
  const std::int64_t ns = number(meta, "flushed_ns");
  if (ns <= 0) return text + "it was never saved as a whole, and parts of it are missing";
  return text + "what it had when it was last saved is there (" + when(meta, ns) +
         "), later parts are missing";
}

}  // namespace

std::vector<std::string> describe_end(const Json& meta, const trace::TraceBundle& bundle, bool finished) {
  std::vector<std::string> sentences;
  if (std::string first = first_sentence(meta, finished); !first.empty()) sentences.push_back(first);
  // Only recorders that run a program say which back end they are and when they began.
  const auto program = meta.find("program");
  const bool none = program != meta.end() && program->is_boolean() && !program->get<bool>();
  const bool ran = meta.contains("backend") && meta.contains("begin_ns") && !none;
  if (!ran || meta.contains("exit_status")) return sentences;
  const std::string threads = running_threads(bundle);
  sentences.push_back(threads.empty()
                          ? "the recording does not say how the program ended"
                          : "the program was still running when the recording ended (" + threads + ")");
  return sentences;
}

}  // namespace ptkit::formats::ptk
