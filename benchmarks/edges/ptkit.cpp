// Counts all edges. From the second run on the code is known.
#include "common/table.h"

namespace ptkit::bench {
namespace {

Outcome run(const trace::TraceBundle& bundle) {
  static Session session(bundle);
  return session.edges({0});
}

}  // namespace
}  // namespace ptkit::bench

int main(int argc, char** argv) {
  return ptkit::bench::contest_main(argc, argv, {ptkit::bench::run, ptkit::bench::run});
}
