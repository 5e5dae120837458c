#include "flow/decoder/flow_state.h"

#include <algorithm>

#include "flow/decoder/state_fields.h"

namespace ptkit::flow {

namespace {

// Compares a predicted state with the actual one.
class Comparison {
 public:
  Comparison(const FlowState& actual, const SpeculationDeps& deps) noexcept
      : deps_(deps), on_(actual.binder.flow == BinderState::Flow::ON) {}

  template <typename T>
  [[nodiscard]] bool same(const T& predicted, const T& actual) const noexcept {
    if constexpr (Part<const T>) {
      return each_pair(predicted, actual,
                       [this](const auto& a, const auto& b) { return this->same_field(a, b); });
    } else if constexpr (kOptional<T>) {
      if (!predicted || !actual) return predicted.has_value() == actual.has_value();
      return same(*predicted, *actual);
    } else {
      return predicted == actual;
    }
  }

 private:
  // Returns to a placeholder are in SpeculationDeps.
  [[nodiscard]] bool same(const CallStack& predicted, const CallStack& actual) const noexcept {
    return predicted.same_but_for_placeholders(actual);
  }
  template <typename T>
  [[nodiscard]] bool same_field(const Field<T>& predicted, const Field<T>& actual) const noexcept {
    if (actual.rule == Rule::NEVER || (actual.rule == Rule::WHILE_ON && !on_)) return true;
    return same(predicted.value, actual.value);
  }
  template <typename T>
  [[nodiscard]] bool same_field(const Proof<T>& predicted, const Proof<T>& actual) const noexcept {
    return predicted.value == actual.value ||
           (predicted.value == predicted.unproven && !(deps_.*predicted.depends));
  }

  const SpeculationDeps& deps_;
  bool on_;
};

// Completes a speculative state.
struct Completion {
  template <Part T>
  void operator()(T& end, const T& actual) const noexcept {
    each_pair(end, actual, [this](const auto& to, const auto& from) {
      this->complete_field(to, from);
      return true;
    });
  }
  void operator()(CallStack& end, const CallStack& actual) const noexcept { end.fill_in(actual); }
  // The speculative decoder found all others.
  template <typename T>
  void operator()(T&, const T&) const noexcept {}

 private:
  template <typename T>
  void complete_field(const Field<T>& end, const Field<const T>& actual) const noexcept {
    (*this)(end.value, actual.value);
  }
  template <typename T>
  void complete_field(const Proof<T>& end, const Proof<const T>& actual) const noexcept {
    if (end.value == end.unproven) end.value = actual.value;
  }
};

// Resets what a speculative decoder does not keep.
template <typename T>
void reset(T& value, const T& initial) {
  if constexpr (Part<T>) {
    each_pair(value, initial, [](const auto& field, const auto& first) {
      if (!field.kept) reset(field.value, first.value);
      return true;
    });
  } else {
    value = initial;
  }
}

}  // namespace

void FlowState::begin_at_psb(std::uint64_t psb, const trace::Stream& stream) {
  reset(*this, {});
  packets.position = psb;
  next_loss = static_cast<std::size_t>(
      std::count_if(stream.losses.begin(), stream.losses.end(),
                    [psb](const trace::KnownLoss& loss) { return loss.offset <= psb; }));
  events.since = psb;
  events.tip_order.other();
  walk.span = {psb, psb};
  if (!stream.switches_by_offset) return;
  const auto next =
      std::upper_bound(stream.switches.begin(), stream.switches.end(), psb,
                       [](std::uint64_t offset, const trace::Switch& one) { return offset < one.offset; });
  context.next_switch = static_cast<std::size_t>(next - stream.switches.begin());
  if (next == stream.switches.begin()) return;
  context.thread.space = std::prev(next)->space;
  context.thread.pid = std::prev(next)->pid;
  context.thread.tid = std::prev(next)->tid;
}

bool equivalent(const FlowState& predicted, const FlowState& actual, const SpeculationDeps& deps) noexcept {
  return !deps.kept_returns && Comparison(actual, deps).same(predicted, actual);
}

void complete(FlowState& end, const FlowState& actual) noexcept { Completion()(end, actual); }

}  // namespace ptkit::flow
