// Random address filters, and what a trace unit that has them sees of a run.
#pragma once

#include <algorithm>
#include <memory>

#include "encoded.h"

namespace ptkit::capture::test {

struct Asked {
  FilterRequest::Kind kind = FilterRequest::Kind::FILTER;
  std::uint64_t first = 0;
  std::uint64_t last = 0;
};

inline std::unique_ptr<AddressFilter> filter_of(const std::vector<Asked>& asked) {
  std::vector<FilterRequest> requests;
  for (const Asked& one : asked) requests.emplace_back().kind = one.kind;
  auto filter = std::make_unique<AddressFilter>(requests);
  for (const Asked& one : asked) filter->add(one.kind, one.first, one.last);
  return filter;
}

// Instruction by instruction, from the description of ADDRn_CFG alone.
struct Model {
  explicit Model(const std::vector<Asked>& asked_in) : asked(asked_in) {
    for (const Asked& one : asked) {
      filters |= one.kind == FilterRequest::Kind::FILTER;
      armed &= one.kind != FilterRequest::Kind::START;
    }
  }

  bool any(FilterRequest::Kind kind, std::uint64_t ip) const {
    return std::any_of(asked.begin(), asked.end(), [&](const Asked& one) {
      return one.kind == kind && ip >= one.first && ip <= one.last;
    });
  }
  bool sees(std::uint64_t ip, bool landed) {
    if (landed) {
      in_range = !filters || any(FilterRequest::Kind::FILTER, ip);
      stopped |= armed && any(FilterRequest::Kind::TRACESTOP, ip);
    }
    if (any(FilterRequest::Kind::STOP, ip)) armed = false;
    if (any(FilterRequest::Kind::START, ip)) armed = true;
    return armed && in_range && !stopped;
  }

  std::vector<Asked> asked;
  bool filters = false;
  bool armed = true;
  bool in_range = true;
  bool stopped = false;
};

struct Truth {
  std::vector<std::uint64_t> ips;
  std::vector<BranchTruth> branches;
};

inline Truth filtered(const Emulation& run, const std::vector<Asked>& asked) {
  Truth out;
  Model model(asked);
  std::size_t branch = 0;
  for (std::size_t i = 0; i < run.ips.size(); ++i) {
    const bool seen = model.sees(run.ips[i], run.landed[i]);
    if (seen) out.ips.push_back(run.ips[i]);
    if (branch == run.branches.size() || run.branch_places[branch] != i) continue;
    if (seen) out.branches.push_back(run.branches[branch]);
    ++branch;
  }
  return out;
}

// Functions end in returns: none is left by going straight on.
inline Asked function_range(const Emulation& run, std::size_t index, FilterRequest::Kind kind) {
  const walk::Function& function = run.program.functions[index];
  std::uint64_t end = function.blocks.back();
  while (run.program.insns.count(end) != 0 && run.program.insns.at(end).function == index)
    end += run.program.insns.at(end).size;
  return {kind, function.entry, end - 1};
}

inline std::vector<Asked> random_ranges(const Emulation& run, std::mt19937_64& random) {
  std::vector<Asked> out;
  const std::uint64_t shape = random() % 5;
  const auto any_function = [&] { return random() % run.program.functions.size(); };
  const auto any_ip = [&] { return run.ips[random() % run.ips.size()]; };
  if (shape != 1) {
    for (std::uint64_t n = 1 + random() % 6; n > 0; --n)
      out.push_back(function_range(run, any_function(), FilterRequest::Kind::FILTER));
  }
  if (shape == 2) {
    out.push_back(function_range(run, any_function(), FilterRequest::Kind::TRACESTOP));
  }
  if (shape == 1 || shape == 3) {
    for (std::uint64_t n = random() % 3; n > 0; --n) out.push_back({FilterRequest::Kind::START, any_ip(), 0});
    for (std::uint64_t n = random() % 3; n > 0; --n) out.push_back({FilterRequest::Kind::STOP, any_ip(), 0});
  }
  for (Asked& one : out) {
    if (one.kind == FilterRequest::Kind::START || one.kind == FilterRequest::Kind::STOP) one.last = one.first;
  }
  return out;
}

}  // namespace ptkit::capture::test
