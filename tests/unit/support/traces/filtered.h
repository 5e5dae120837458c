// Random address filters, and the instructions of a run that a trace unit with these filters traces.
#pragma once

#include <algorithm>
#include <memory>

#include "encoded.h"

namespace ptkit::capture::test {

struct RequestedRange {
  FilterRequest::Kind kind = FilterRequest::Kind::FILTER;
  std::uint64_t first = 0;
  std::uint64_t last = 0;
};

inline std::unique_ptr<AddressFilter> filter_of(const std::vector<RequestedRange>& requested) {
  std::vector<FilterRequest> requests;
  for (const RequestedRange& one : requested) requests.emplace_back().kind = one.kind;
  auto filter = std::make_unique<AddressFilter>(requests);
  for (const RequestedRange& one : requested) filter->add(one.kind, one.first, one.last);
  return filter;
}

// A model of ADDRn_CFG per instruction, from the manual's description.
struct Model {
  explicit Model(const std::vector<RequestedRange>& requested_in) : requested(requested_in) {
    for (const RequestedRange& one : requested) {
      filters |= one.kind == FilterRequest::Kind::FILTER;
      armed &= one.kind != FilterRequest::Kind::START;
    }
  }

  bool any(FilterRequest::Kind kind, std::uint64_t ip) const {
    return std::any_of(requested.begin(), requested.end(), [&](const RequestedRange& one) {
      return one.kind == kind && ip >= one.first && ip <= one.last;
    });
  }
  bool is_traced(std::uint64_t ip, bool branched_here) {
    if (branched_here) {
      in_range = !filters || any(FilterRequest::Kind::FILTER, ip);
      stopped |= armed && any(FilterRequest::Kind::TRACESTOP, ip);
    }
    if (any(FilterRequest::Kind::STOP, ip)) armed = false;
    if (any(FilterRequest::Kind::START, ip)) armed = true;
    return armed && in_range && !stopped;
  }

  std::vector<RequestedRange> requested;
  bool filters = false;
  bool armed = true;
  bool in_range = true;
  bool stopped = false;
};

struct Expected {
  std::vector<std::uint64_t> ips;
  std::vector<ExpectedBranch> branches;
};

inline Expected filtered(const Emulation& run, const std::vector<RequestedRange>& requested) {
  Expected out;
  Model model(requested);
  std::size_t branch = 0;
  for (std::size_t i = 0; i < run.ips.size(); ++i) {
    const bool seen = model.is_traced(run.ips[i], run.branched_here[i]);
    if (seen) out.ips.push_back(run.ips[i]);
    if (branch == run.branches.size() || run.branch_indices[branch] != i) continue;
    if (seen) out.branches.push_back(run.branches[branch]);
    ++branch;
  }
  return out;
}

// Functions end in returns, so none falls through to the next.
inline RequestedRange function_range(const Emulation& run, std::size_t index, FilterRequest::Kind kind) {
  const walk::Function& function = run.program.functions[index];
  std::uint64_t end = function.blocks.back();
  while (run.program.insns.count(end) != 0 && run.program.insns.at(end).function == index)
    end += run.program.insns.at(end).size;
  return {kind, function.entry, end - 1};
}

inline std::vector<RequestedRange> random_ranges(const Emulation& run, std::mt19937_64& random) {
  std::vector<RequestedRange> out;
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
  for (RequestedRange& one : out) {
    if (one.kind == FilterRequest::Kind::START || one.kind == FilterRequest::Kind::STOP) one.last = one.first;
  }
  return out;
}

}  // namespace ptkit::capture::test
