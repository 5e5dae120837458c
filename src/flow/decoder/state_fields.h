// The fields of a FlowState, with a rule for each. Files, comparisons, the completion of a speculative state
// and the start of speculation all use this one description. A field that a structured binding lacks, or that
// is bound and not described, does not compile.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "base/member_count.h"
#include "flow/decoder/flow_state.h"

namespace ptkit::flow {

// Whether rows depend on a field.
enum class Rule : std::uint8_t {
  ALWAYS,
  WHILE_ON,  // position in the code: while packets are enabled. Later, TIP.PGE gives a new position.
  NEVER,
};

template <typename T>
struct Field {
  T& value;
  Rule rule = Rule::ALWAYS;
  bool kept = false;  // a speculative decoder starts with the predicted value, else with the initial one
};

// A property of the stream that a packet proves once, and that is `unproven` until then. Rows depend on it
// only if the decoder noted so in SpeculationDeps.
template <typename T>
struct Proof : Field<T> {
  std::remove_const_t<T> unproven;
  bool SpeculationDeps::*depends;
};

// A field that is no part of the state: the code gives it.
struct Rebuilt {};

template <typename T>
Proof<T> proof(T& value, std::remove_const_t<T> unproven, bool SpeculationDeps::*depends) noexcept {
  return {{value}, unproven, depends};
}
template <typename T>
Field<T> always(T& value) noexcept {
  return {value};
}
template <typename T>
Field<T> while_on(T& value) noexcept {
  return {value, Rule::WHILE_ON};
}
template <typename T>
Field<T> never(T& value) noexcept {
  return {value, Rule::NEVER};
}
template <typename T>
Rebuilt rebuilt(const T&) noexcept {
  return {};
}
template <typename Described>
Described kept(Described field) noexcept {
  field.kept = true;
  return field;
}

template <typename T, typename Part>
concept Is = std::same_as<std::remove_const_t<T>, Part>;

auto fields_of(Is<packet::DecoderState> auto& part) noexcept {
  auto& [position, last_ip, last_ip_known, in_psb, block_open, block_items_4, has_cs_base] = part;
  return std::tuple{always(position),   always(last_ip),       always(last_ip_known),    always(in_psb),
                    always(block_open), always(block_items_4), kept(always(has_cs_base))};
}

auto fields_of(Is<EventState> auto& part) noexcept {
  auto& [psb, since, tnt_before, tip_watch, tip_order, mode, first_psb, event_trace, time_moved,
         cycles_give_time, mtcs] = part;
  return std::tuple{never(psb),
                    always(since),
                    always(tnt_before),
                    always(tip_watch),
                    kept(always(tip_order)),
                    always(mode),
                    always(first_psb),
                    kept(proof(event_trace, EventTrace::UNKNOWN, &SpeculationDeps::event_trace)),
                    always(time_moved),
                    always(cycles_give_time),
                    always(mtcs)};
}

auto fields_of(Is<BinderState> auto& part) noexcept {
  auto& [flow, bits_dropped, tips_deferred, tnt_disabled, no_code_reported, after_branch, abort_ip,
         resume_ip] = part;
  return std::tuple{always(flow),
                    always(bits_dropped),
                    proof(tips_deferred, true, &SpeculationDeps::tips_deferred),
                    kept(always(tnt_disabled)),
                    always(no_code_reported),
                    always(after_branch),
                    always(abort_ip),
                    always(resume_ip)};
}

auto fields_of(Is<StreamSpan> auto& part) noexcept {
  auto& [since, offset, before_first_bit] = part;
  return std::tuple{always(since), always(offset), always(before_first_bit)};
}

// A branch is the same in blocks that begin elsewhere.
auto fields_of(Is<BasicBlock> auto& part) noexcept {
  auto& [ip, last_ip, next_ip, target, next_block, target_block, first, count, size, number_low, number_high,
         end, branch, kind, pushes, failure] = part;
  return std::tuple{never(ip),           always(last_ip),       always(next_ip),      always(target),
                    rebuilt(next_block), rebuilt(target_block), rebuilt(first),       rebuilt(count),
                    never(size),         rebuilt(number_low),   rebuilt(number_high), always(end),
                    always(branch),      never(kind),           always(pushes),       never(failure)};
}

auto fields_of(Is<BlockInsn> auto& part) noexcept {
  auto& [size, cls, kind] = part;
  return std::tuple{always(size), always(cls), always(kind)};
}

auto fields_of(Is<BoundInsn> auto& part) noexcept {
  auto& [insn, ip, kinds] = part;
  return std::tuple{always(insn), always(ip), always(kinds)};
}

auto fields_of(Is<WalkState> auto& part) noexcept {
  auto& [span, ip, branch, in_tx, binding, icnt, calls] = part;
  return std::tuple{always(span),      while_on(ip),   while_on(branch), always(in_tx),
                    while_on(binding), while_on(icnt), always(calls)};
}

auto fields_of(Is<Context> auto& part) noexcept {
  auto& [offset, space, cpu, pid, tid] = part;
  return std::tuple{never(offset), always(space), always(cpu), always(pid), always(tid)};
}

auto fields_of(Is<ContextState> auto& part) noexcept {
  auto& [thread, mode, tsc, next_switch] = part;
  return std::tuple{always(thread), always(mode), always(tsc), always(next_switch)};
}

auto fields_of(Is<Gap> auto& part) noexcept {
  auto& [begin, end, from_ip, to_ip, cause, code, flags] = part;
  return std::tuple{always(begin), always(end),  always(from_ip), always(to_ip),
                    always(cause), always(code), always(flags)};
}

auto fields_of(Is<FlowState> auto& part) noexcept {
  auto& [packets, next_loss, events, binder, walk, context, gap] = part;
  return std::tuple{always(packets), always(next_loss),     always(events), always(binder),
                    always(walk),    kept(always(context)), always(gap)};
}

template <typename T>
concept Part = requires(T& part) {
  fields_of(part);
};

template <typename T>
inline constexpr bool kOptional = false;
template <typename T>
inline constexpr bool kOptional<std::optional<T>> = true;

// The description of a part, which has to be complete.
template <Part T>
auto all_fields_of(T& part) noexcept {
  constexpr bool kEveryFieldIsDescribed =
      std::tuple_size_v<decltype(fields_of(part))> == base::kMemberCount<std::remove_const_t<T>>;
  static_assert(kEveryFieldIsDescribed, "fields_of() leaves out a field that it binds");
  return fields_of(part);
}

// Calls visit(field) for each field of a part.
template <Part T, typename Visit>
void each_field(T& part, const Visit& visit) {
  const auto visit_one = [&](const auto& field) {
    if constexpr (!std::same_as<decltype(field), const Rebuilt&>) visit(field);
  };
  std::apply([&](const auto&... field) { (visit_one(field), ...); }, all_fields_of(part));
}

// Calls visit(field of a, field of b) for each field of two parts, until it returns false.
template <Part A, Part B, typename Visit>
bool each_pair(A& a, B& b, const Visit& visit) {
  const auto fields_a = all_fields_of(a);
  const auto fields_b = all_fields_of(b);
  const auto visit_one = [&](const auto& field_a, const auto& field_b) {
    if constexpr (std::same_as<decltype(field_a), const Rebuilt&>) {
      return true;
    } else {
      return visit(field_a, field_b);
    }
  };
  return [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
    return (visit_one(std::get<kIndex>(fields_a), std::get<kIndex>(fields_b)) && ...);
  }
  (std::make_index_sequence<std::tuple_size_v<decltype(fields_a)>>());
}

}  // namespace ptkit::flow
