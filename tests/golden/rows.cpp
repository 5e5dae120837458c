// Prints rows that libipt does not have: every event with its fields, and checks of times.
#include <cinttypes>
#include <cstdio>
#include <iterator>
#include <sstream>

#include "case.h"
#include "flow/decoder/decoder.h"

namespace ptkit::golden {
namespace {

using flow::EventKind;

// In the order of EventKind.
constexpr const char* kEventNames[] = {
    "enabled", "disabled",   "async disabled", "async branch", "overflow",   "paging",     "async paging",
    "vmcs",    "async vmcs", "exec mode",      "tsx begin",    "tsx commit", "tsx abort",  "stop",
    "exstop",  "mwait",      "pwre",           "pwrx",         "ptwrite",    "cbr",        "mnt",
    "tick",    "iflag",      "interrupt",      "iret",         "smi",        "rsm",        "sipi",
    "init",    "vmentry",    "vmexit",         "shutdown",     "uintr",      "uiret",      "trig",
    "swintr",  "syscall",    "pebs begin",     "pebs item",    "pebs end",   "event data", "status"};
static_assert(std::size(kEventNames) == static_cast<std::size_t>(EventKind::STATUS) + 1);

class EventPrinter final : public flow::FlowSink {
 public:
  void on_block(const flow::Block& block) override {
    std::uint64_t ip = block.ip;
    for (const flow::BlockInsn& insn : block.insns) {
      print("%016" PRIx64 "\n", ip);
      ip += insn.size;
    }
  }
  void on_event(const flow::Event& event) override {
    const auto kind = static_cast<std::size_t>(event.kind);
    print("[%s", kind < std::size(kEventNames) ? kEventNames[kind] : "?");
    if (event.payload != 0 || event.payload2 != 0)
      print(" %" PRIx64 ", %" PRIx64, event.payload, event.payload2);
    if ((event.flags & flow::EV_IP_KNOWN) != 0) print(" at %016" PRIx64, event.ip);
    print("%s]\n", (event.flags & flow::EV_STATUS) != 0 ? ", status" : "");
  }
  void on_error(const flow::FlowError& error) override {
    print("[%" PRIx64 ": %s]\n", error.span.offset, std::string(base::status_name(error.code)).c_str());
  }
  [[nodiscard]] std::string text() const { return text_; }

 private:
  template <typename... Values>
  void print(const char* form, Values... values) {
    char line[160];
    const int length = std::snprintf(line, sizeof line, form, values...);
    text_.append(line, static_cast<std::size_t>(length));
  }

  std::string text_;
};

}  // namespace

std::string run_events(const Case& test_case) {
  const std::shared_ptr<trace::TraceBundle> bundle = bundle_of(test_case);
  const code::image::Image image(bundle);
  EventPrinter printer;
  flow::FlowOptions options;
  // As in ptxed.cpp.
  options.resync = test_case.has_option("--resync-on-error") ? flow::Resync::IP : flow::Resync::PSB;
  options.errata = test_case.errata;
  flow::FlowDecoder decoder(bundle->streams[0], test_case.configuration, image, options, printer, nullptr);
  while (decoder.run()) {
  }
  return printer.text();
}

// Each expected line has the offset of a packet and its actual time, both in hex. The output repeats the line
// if the interval of the packet contains that time and, with a third number, is not wider than that number.
std::string run_times(const Case& test_case) {
  time::TimeTrack track(test_case.stream, test_case.configuration.clock, test_case.errata);
  std::istringstream lines(test_case.expected);
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    unsigned long long offset = 0;
    unsigned long long truth = 0;
    unsigned long long width = ~0ULL;
    if (std::sscanf(line.c_str(), "%llx %llx %llx", &offset, &truth, &width) < 2) continue;
    const time::TimeRange range = track.at(offset, offset);
    char mismatch[96];
    std::snprintf(mismatch, sizeof mismatch, "%016llx: %s [%" PRIx64 ", %" PRIx64 "]", offset,
                  range.known ? "" : "unknown", range.tsc, range.tsc + range.error);
    const bool holds =
        range.known && range.tsc <= truth && truth - range.tsc <= range.error && range.error <= width;
    text += (holds ? line : mismatch) + std::string("\n");
  }
  return text;
}

}  // namespace ptkit::golden
