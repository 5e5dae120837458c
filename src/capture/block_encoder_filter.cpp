// Which blocks are traced: see address_filter.h.
#include "capture/block_encoder_state.h"

namespace ptkit::capture {

void BlockEncoder::State::look_at_filter() {
  if (filter == nullptr || rules == filter->rules()) return;
  close_lane();
  rules = filter->rules();
  hot.clear();  // ways that were learned may lead out now
}

void BlockEncoder::State::land(std::uint64_t ip) {
  if (rules == nullptr) return;
  in_range = rules->traced(ip);
  if (stopped || !armed || !rules->stops(ip)) return;
  stopped = true;
  unit.unit().trace_stop();
}

// What is to be done at the instruction at `ip`, which is about to be executed.
void BlockEncoder::State::pass_points(std::span<const AddressFilter::Point> points, std::uint64_t ip,
                                      std::uint64_t tsc) {
  for (const AddressFilter::Point& point : points) {
    if (point.address != ip) continue;
    switch (point.kind) {
      case AddressFilter::Point::Kind::WATCH:
        if (watcher) watcher(point.id, tsc);
        break;
      case AddressFilter::Point::Kind::STOP:
        armed = false;
        unit.interrupted(ip);
        break;
      case AddressFilter::Point::Kind::START:
        armed = true;
        if (traced() && !unit.inside()) unit.enter(ip, insn::ExecMode::BITS64);
        break;
    }
  }
}

}  // namespace ptkit::capture
