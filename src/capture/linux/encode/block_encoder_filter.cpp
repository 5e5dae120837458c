// Address filters of a BlockEncoder (address_filter.h).
#include "capture/linux/encode/block_encoder_state.h"

namespace ptkit::capture {

void BlockEncoder::State::update_rules() {
  if (filter == nullptr || rules == filter->rules()) return;
  close_fast_path();
  rules = filter->rules();
  hot.clear();  // learned transitions may now leave the FILTER ranges
}

void BlockEncoder::State::land_at(std::uint64_t ip) {
  if (rules == nullptr) return;
  in_range = rules->traced(ip);
  if (stopped || !armed || !rules->stops(ip)) return;
  stopped = true;
  tracer.generator().trace_stop();
}

// Applies the points at `ip` before its instruction is executed.
void BlockEncoder::State::check_points(std::span<const AddressFilter::Point> points, std::uint64_t ip,
                                       std::uint64_t tsc) {
  for (const AddressFilter::Point& point : points) {
    if (point.address != ip) continue;
    switch (point.kind) {
      case AddressFilter::Point::Kind::WATCH:
        if (watcher) watcher(point.id, tsc);
        break;
      case AddressFilter::Point::Kind::STOP:
        armed = false;
        tracer.interrupted(ip);
        break;
      case AddressFilter::Point::Kind::START:
        armed = true;
        if (traced() && !tracer.inside()) tracer.enter(ip, code::insn::ExecMode::BITS64);
        break;
    }
  }
}

}  // namespace ptkit::capture
