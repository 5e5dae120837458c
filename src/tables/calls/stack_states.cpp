#include "tables/calls/stack_states.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/fields.h"

namespace ptkit::tables::calls {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 25U;

template <typename Fields>
void function_fields(Fields& fields, Function& function) {
  fields(function.entry_ip);
  fields(function.space);
  fields(function.file);
  fields(function.offset);
  fields(function.code_tsc);
  fields(function.inlined);
  fields(function.import);
  fields(function.import_module);
  fields(function.level);
  fields(function.thread);
  base::optional_fields(fields, function.memory_base, [&fields](std::uint64_t& base) { fields(base); });
  fields(function.memory_space);
}

template <typename Fields>
void numbers_fields(Fields& fields, StackStates::Numbers& numbers) {
  fields(numbers.functions);
  for (std::uint64_t& groups : numbers.groups) fields(groups);
  fields(numbers.cells);
}

[[nodiscard]] bool is_of(const Function& function, const trace::TraceBundle& bundle) {
  return function.file >= -1 && function.file < std::ssize(bundle.files) &&
         function.space < bundle.spaces.size() && function.memory_space < bundle.spaces.size();
}

[[nodiscard]] std::vector<Function> listed(const FunctionTable& table) {
  std::vector<Function> functions;
  for (std::uint32_t i = kFirstFunction; i < table.size(); ++i) functions.push_back(table.at(i));
  return functions;
}

}  // namespace

template <typename Fields>
void StackStates::describe(Fields& fields) {
  fields(frames_);
  const auto function = [&fields](Function& one) { function_fields(fields, one); };
  base::list_fields(fields, functions_, function);
  for (std::vector<Function>& groups : groups_) base::list_fields(fields, groups, function);
  base::list_fields(fields, cells_, [&fields](MoreGroups::Cell& cell) {
    fields(cell.function);
    for (std::uint32_t& group : cell.groups) fields(group);
  });
  base::list_fields(fields, states_, [&fields](State& state) {
    fields(state.segment);
    numbers_fields(fields, state.numbers);
    base::list_fields(fields, state.bytes, [&fields](std::uint8_t& byte) { fields(byte); });
  });
}

void StackStates::add(State state) {
  if (state.segment % step_ != 0) return;
  bytes_ += state.bytes.size();
  states_.push_back(std::move(state));
  while (bytes_ > kMostBytes && states_.size() > 1) {
    step_ *= 2;
    std::erase_if(states_, [this](const State& one) { return one.segment % step_ != 0; });
    bytes_ = 0;
    for (const State& one : states_) bytes_ += one.bytes.size();
  }
}

std::vector<std::uint8_t> StackStates::to_bytes(const FunctionTable& functions, const MoreGroups& groups) {
  functions_ = listed(functions);
  for (std::size_t i = 0; i < kMoreGroups; ++i) groups_[i] = listed(groups.groups(i).table());
  cells_.clear();
  for (std::uint32_t i = 0; i < groups.size(); ++i) cells_.push_back(groups.cell(i));
  base::FieldWriter fields;
  describe(fields);
  return std::move(fields.bytes());
}

std::optional<StackStates> StackStates::from_bytes(base::Bytes bytes, const trace::TraceBundle& bundle) {
  StackStates found;
  base::FieldReader fields(bytes);
  found.describe(fields);
  const auto good = [&bundle](const std::vector<Function>& functions) {
    return std::ranges::all_of(functions, [&bundle](const Function& one) { return is_of(one, bundle); });
  };
  const bool ascends = std::ranges::is_sorted(found.states_, {}, &State::segment);
  if (!fields.good() || !ascends || !good(found.functions_) || !std::ranges::all_of(found.groups_, good))
    return std::nullopt;
  return found;
}

bool StackStates::give_numbers(const Numbers& numbers, FunctionTable& functions, MoreGroups& groups) const {
  bool good = true;
  const auto give = [&good](const auto& all, std::uint64_t count, const auto& number) {
    good = good && count <= all.size();
    if (good) number(std::span(all).first(static_cast<std::size_t>(count)));
  };
  give(functions_, numbers.functions, [&functions](std::span<const Function> given) {
    for (const Function& one : given) static_cast<void>(functions.number(one));
  });
  for (std::size_t i = 0; i < kMoreGroups; ++i) {
    give(groups_[i], numbers.groups[i],
         [&groups, i](std::span<const Function> given) { groups.give_numbers(i, given); });
  }
  give(cells_, numbers.cells, [&](std::span<const MoreGroups::Cell> given) {
    good = std::ranges::all_of(given, [&](const MoreGroups::Cell& cell) {
      if (cell.function >= functions.size()) return false;
      for (std::size_t i = 0; i < kMoreGroups; ++i) {
        if (cell.groups[i] >= groups.groups(i).table().size()) return false;
      }
      return true;
    });
    if (good) groups.give_numbers(given);
  });
  return good && functions.size() == kFirstFunction + numbers.functions && groups.size() == numbers.cells;
}

}  // namespace ptkit::tables::calls
