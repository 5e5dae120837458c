#include "formats/ptk/end_state.h"

#include <chrono>
#include <cstdio>
#include <optional>
#include <set>
#include <utility>

#include "trace/warning_codes.h"

namespace ptkit::formats::ptk {

using trace::WarningCode;

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

// "2026-11-20 19:03:02 UTC, 12.5 s after it began".
std::string when(const Json& meta, std::int64_t ns) {
  std::string text = date(ns);
  const std::int64_t begin = number(meta, "begin_ns");
  if (begin <= 0 || ns < begin) return text;
  char since[48];
  std::snprintf(since, sizeof since, ", %.1f s after it began", static_cast<double>(ns - begin) / 1e9);
  text += since;
  return text;
}

// Threads with a stream and without an EXIT record.
trace::Warning warn_of_missing_exit(const trace::TraceBundle& bundle) {
  std::set<std::int64_t> running;
  for (const trace::Stream& stream : bundle.streams) running.insert(stream.tid);
  running.erase(trace::kNoId);
  const std::size_t all = running.size();
  for (const trace::Sideband& record : bundle.sideband) {
    if (record.kind == trace::SidebandKind::EXIT) running.erase(record.tid);
  }
  if (running.empty()) return warn(WarningCode::PROGRAM_END_UNKNOWN);
  return warn(WarningCode::PROGRAM_RUNNING, running.size(), all);
}

std::optional<trace::Warning> warn_of_missing_end(const Json& meta, bool finished) {
  const auto failed = meta.find("failed");
  if (failed != meta.end() && failed->is_string()) {
    const auto reason = failed->get<std::string>();
    const std::int64_t ns = number(meta, "failed_ns");
    if (ns <= 0) return warn(WarningCode::RECORDING_FAILED, reason);
    return warn(WarningCode::RECORDING_FAILED_AT, reason, when(meta, ns));
  }
  if (finished) return {};
  const std::int64_t ns = number(meta, "flushed_ns");
  if (ns <= 0) return warn(WarningCode::RECORDING_NOT_SAVED);
  return warn(WarningCode::RECORDING_UNFINISHED, when(meta, ns));
}

}  // namespace

std::vector<trace::Warning> describe_end(const Json& meta, const trace::TraceBundle& bundle, bool finished) {
  std::vector<trace::Warning> warnings;
  if (auto first = warn_of_missing_end(meta, finished)) warnings.push_back(std::move(*first));
  // Only recorders that run a program write "backend" and "begin_ns".
  const auto program = meta.find("program");
  const bool none = program != meta.end() && program->is_boolean() && !program->get<bool>();
  const bool ran = meta.contains("backend") && meta.contains("begin_ns") && !none;
  if (ran && !meta.contains("exit_status")) warnings.push_back(warn_of_missing_exit(bundle));
  return warnings;
}

}  // namespace ptkit::formats::ptk
