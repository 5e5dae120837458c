#include "trace_unit/msr/config.h"

#include <algorithm>

#include "trace_unit/msr/caps.h"
#include "trace_unit/msr/registers.h"

namespace ptkit::trace_unit::msr {

namespace {

constexpr std::string_view kSection = "IA32_RTIT_CTL MSR";

constexpr std::uint64_t mask_of(unsigned width) { return (std::uint64_t{1} << width) - 1; }

Effect effect_of(pt_effect effect) {
  switch (effect) {
    case PT_EFFECT_FAULT:
      return Effect::FAULT;
    case PT_EFFECT_ERROR:
      return Effect::ERROR;
    case PT_EFFECT_UNTRACED:
      return Effect::UNTRACED;
    case PT_EFFECT_NOTHING:
      break;
  }
  return Effect::NOTHING;
}

// Rules about address ranges name a field with n and no register.
std::string of_range(std::string field, std::uint32_t range) {
  if (const auto at = field.find("ADDRn"); at != std::string::npos)
    field.replace(at + 4, 1, std::to_string(range));
  return field;
}

void report(void* context, pt_rule rule, std::uint32_t range) {
  auto& violations = *static_cast<std::vector<Violation>*>(context);
  const pt_rule_text& text = *pt_describe_rule(rule);
  const std::uint32_t second = rule == PT_RULE_ADDR_A ? 0 : 1;
  violations.push_back({.msr = text.msr != 0 ? text.msr : PT_MSR_RTIT_ADDR0_A + 2 * range + second,
                        .field = of_range(text.field, range),
                        .rule = text.words,
                        .section = text.section,
                        .effect = effect_of(text.effect)});
}

void check_width(std::string_view name, std::uint64_t value, unsigned width, std::vector<Violation>& out) {
  if (value <= mask_of(width)) return;
  out.push_back({.msr = PT_MSR_RTIT_CTL,
                 .field = std::string(name),
                 .rule = std::to_string(value) + " does not fit: it has " + std::to_string(width) +
                         " bits, 0 to " + std::to_string(mask_of(width)),
                 .section = std::string(kSection),
                 .effect = Effect::FAULT});
}

}  // namespace

RegisterValues values_of(const RtitConfig& config) {
  RegisterValues values;
#define PT_CTL_FIELD(member, type, name, shift, width, format, perf, set, clear) \
  values.ctl |= (static_cast<std::uint64_t>(config.member) & mask_of(width)) << (shift);
#include "trace_unit/msr/ctl.def"
#undef PT_CTL_FIELD
  values.status = config.status;
  values.output_base = config.output_base;
  values.output_mask_ptrs = config.output_mask_ptrs;
  values.cr3_match = config.cr3_match;
  for (std::size_t i = 0; i < config.addr.size(); ++i) {
    values.addr[2 * i] = config.addr[i].a;
    values.addr[2 * i + 1] = config.addr[i].b;
  }
  return values;
}

RtitConfig config_of(const RegisterValues& values) {
  RtitConfig config;
#define PT_CTL_FIELD(member, type, name, shift, width, format, perf, set, clear) \
  config.member = static_cast<type>(values.ctl >> (shift)&mask_of(width));
#include "trace_unit/msr/ctl.def"
#undef PT_CTL_FIELD
  config.status = values.status;
  config.output_base = values.output_base;
  config.output_mask_ptrs = values.output_mask_ptrs;
  config.cr3_match = values.cr3_match;
  for (std::size_t i = 0; i < config.addr.size(); ++i) {
    config.addr[i] = {values.addr[2 * i], values.addr[2 * i + 1]};
  }
  return config;
}

std::vector<Violation> check(const RegisterValues& values, const Capabilities& capabilities) {
  std::vector<Violation> violations;
  const pt_caps caps = caps_of(capabilities);
  const pt_state state = state_of(values);
  pt_check(&caps, &state, &report, &violations);
  return violations;
}

std::vector<Violation> check(const RtitConfig& config, const Capabilities& capabilities) {
  std::vector<Violation> violations;
#define PT_CTL_FIELD(member, type, name, shift, width, format, perf, set, clear) \
  check_width(name, static_cast<std::uint64_t>(config.member), width, violations);
#include "trace_unit/msr/ctl.def"
#undef PT_CTL_FIELD
  for (Violation& violation : check(values_of(config), capabilities)) {
    violations.push_back(std::move(violation));
  }
  return violations;
}

bool is_refused(const Violation& violation) noexcept {
  return violation.effect == Effect::FAULT || violation.effect == Effect::ERROR;
}

bool accepted(const std::vector<Violation>& violations) {
  return std::none_of(violations.begin(), violations.end(), &is_refused);
}

}  // namespace ptkit::trace_unit::msr
