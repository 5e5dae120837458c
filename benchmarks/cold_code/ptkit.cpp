// Counts all edges of the second half of a trace. The decoder has decoded only the first half before.
#include <optional>

#include "common/split_stream.h"
#include "common/table.h"

namespace ptkit::bench {
namespace {

struct WarmedUp {
  explicit WarmedUp(const trace::TraceBundle& bundle) : halves(halves_of(bundle)) {}
  trace::TraceBundle halves;
  std::optional<Session> session;
};

WarmedUp& warmed_up(const trace::TraceBundle& bundle) {
  static WarmedUp warmed_up(bundle);
  return warmed_up;
}

void prepare(const trace::TraceBundle& bundle) {
  WarmedUp& state = warmed_up(bundle);
  state.session.emplace(state.halves);
  static_cast<void>(state.session->edges({0}));
}

Outcome run(const trace::TraceBundle& bundle) { return warmed_up(bundle).session->edges({1}); }

Outcome check(const trace::TraceBundle& bundle) {
  prepare(bundle);
  return run(bundle);
}

std::size_t bytes(const trace::TraceBundle& bundle) {
  return warmed_up(bundle).halves.streams[1].data.size();
}

}  // namespace
}  // namespace ptkit::bench

int main(int argc, char** argv) {
  using namespace ptkit::bench;
  return contest_main(argc, argv, {run, check, prepare, bytes});
}
