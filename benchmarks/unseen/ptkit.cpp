// Counts of all edges of the second half of a trace by a decoder that knows the first half only.
#include <optional>

#include "common/halves.h"
#include "common/table.h"

namespace ptkit::bench {
namespace {

struct Trained {
  explicit Trained(const trace::TraceBundle& bundle) : halves(halves_of(bundle)) {}
  trace::TraceBundle halves;
  std::optional<Session> session;
};

Trained& trained(const trace::TraceBundle& bundle) {
  static Trained trained(bundle);
  return trained;
}

void prepare(const trace::TraceBundle& bundle) {
  Trained& state = trained(bundle);
  state.session.emplace(state.halves);
  static_cast<void>(state.session->edges({0}));
}

Outcome run(const trace::TraceBundle& bundle) { return trained(bundle).session->edges({1}); }

Outcome check(const trace::TraceBundle& bundle) {
  prepare(bundle);
  return run(bundle);
}

std::size_t bytes(const trace::TraceBundle& bundle) { return trained(bundle).halves.streams[1].data.size(); }

}  // namespace
}  // namespace ptkit::bench

int main(int argc, char** argv) {
  using namespace ptkit::bench;
  return contest_main(argc, argv, {run, check, prepare, bytes});
}
