// Counts all edges of the second half of a trace by a new decoder.
#include "common/split_stream.h"
#include "common/table.h"

namespace ptkit::bench {
namespace {

const trace::TraceBundle& halves(const trace::TraceBundle& bundle) {
  static const trace::TraceBundle halves = halves_of(bundle);
  return halves;
}

Outcome run(const trace::TraceBundle& bundle) { return Session(halves(bundle)).edges({1}); }

std::size_t bytes(const trace::TraceBundle& bundle) { return halves(bundle).streams[1].data.size(); }

}  // namespace
}  // namespace ptkit::bench

int main(int argc, char** argv) {
  using namespace ptkit::bench;
  return contest_main(argc, argv, {run, run, {}, bytes});
}
