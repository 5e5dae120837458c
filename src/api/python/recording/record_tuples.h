// Converts filters and triggers from Python's tuples.
#pragma once

#include <array>
#include <string>
#include <tuple>
#include <utility>

#include "api/python/bindings.h"
#include "capture/common/record_options.h"

namespace ptkit::api::python {

template <typename T, std::size_t N>
inline T named(const char* option, const std::string& name,
               const std::array<std::pair<const char*, T>, N>& values) {
  std::string names;
  for (const auto& [text, value] : values) {
    if (name == text) return value;
    names += (names.empty() ? "" : ", ") + std::string(text);
  }
  throw py::value_error(std::string(option) + ": expected one of " + names + ", found " + name);
}

using FilterTuple = std::tuple<std::string, std::string, std::string, std::uint64_t, std::uint64_t>;
using TriggerTuple =
    std::tuple<std::string, std::string, std::string, std::string, std::uint64_t, int, std::uint64_t>;

// The IDs of a user and a group.
using OwnerTuple = std::tuple<std::uint32_t, std::uint32_t>;

inline base::Owner owner_of(const OwnerTuple& given) { return {std::get<0>(given), std::get<1>(given)}; }

inline capture::FilterRequest filter_of(const FilterTuple& given) {
  using Kind = capture::FilterRequest::Kind;
  constexpr std::array<std::pair<const char*, Kind>, 4> kKinds{{{"filter", Kind::FILTER},
                                                                {"tracestop", Kind::TRACESTOP},
                                                                {"start", Kind::START},
                                                                {"stop", Kind::STOP}}};
  const auto& [kind, file, symbol, first, last] = given;
  return {named("filters", kind, kKinds), file, symbol, first, last};
}

inline capture::TriggerRequest trigger_of(const TriggerTuple& given) {
  using Event = capture::TriggerRequest::Event;
  using Action = capture::TriggerRequest::Action;
  constexpr std::array<std::pair<const char*, Event>, 3> kEvents{
      {{"symbol", Event::SYMBOL}, {"address", Event::ADDRESS}, {"signal", Event::SIGNAL}}};
  constexpr std::array<std::pair<const char*, Action>, 3> kActions{
      {{"start", Action::START}, {"stop", Action::STOP}, {"snapshot", Action::SNAPSHOT}}};
  const auto& [event, action, file, symbol, address, signal, count] = given;
  return {named("triggers", event, kEvents),
          named("triggers", action, kActions),
          file,
          symbol,
          address,
          signal,
          count};
}

}  // namespace ptkit::api::python
