// Call stacks of an index that say anything: refused, or rows go on with them without a crash.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "tables/calls/stack_states.h"
#include "unit/tables/calls/random_branches.h"

namespace {

using namespace ptkit;

constexpr std::size_t kRows = 400;

std::vector<std::uint8_t> state_of(std::uint32_t seed) {
  tables::calls::Program before;
  tables::calls::Program rest;
  tables::calls::Resumption resumption{.row = kRows / 2, .program = rest};
  tables::calls::run_random(before, seed, kRows, tables::calls::RowWindow{.begin = kRows - 1}, &resumption);
  if (!resumption.is_restored) std::abort();
  return resumption.state;
}

// Each three bytes of the input change one.
void change(std::vector<std::uint8_t>& bytes, base::Bytes input) {
  for (std::size_t i = 0; i + 2 < input.size(); i += 3)
    bytes[static_cast<std::size_t>(input[i] | input[i + 1] << 8U) % bytes.size()] = input[i + 2];
}

void go_on(const std::vector<std::uint8_t>& state, std::uint32_t seed) {
  tables::calls::Program program;
  program.machine.set_window();
  base::FieldReader fields(state);
  const tables::calls::StateLimits limits{
      .functions = tables::calls::kFirstFunction + 0x2000, .spaces = 4, .frames = 100000};
  if (!program.machine.restore(fields, limits)) return;
  tables::calls::run_random(program, seed, 60, tables::calls::RowWindow{.begin = 5});
  program.finish();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<std::uint8_t> kStates[] = {state_of(1), state_of(7), state_of(23), state_of(40)};
  if (size == 0) return 0;
  const base::Bytes input(data + 1, size - 1);
  std::vector<std::uint8_t> state = kStates[data[0] % std::size(kStates)];
  change(state, input);
  go_on(state, data[0]);
  trace::TraceBundle bundle;
  bundle.spaces.emplace_back();
  const auto states = tables::calls::StackStates::from_bytes(input, bundle);
  if (!states) return 0;
  for (const tables::calls::StackStates::State& one : states->states()) {
    tables::calls::FunctionTable functions;
    tables::calls::MoreGroups groups(functions);
    static_cast<void>(states->give_numbers(one.numbers, functions, groups));
  }
  return 0;
}
