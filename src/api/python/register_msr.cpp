// The model of the IA32_RTIT registers: fields, violations, write sequences.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "api/python/bindings.h"
#include "trace_unit/msr/explain.h"
#include "trace_unit/msr/perf.h"
#include "trace_unit/msr/program.h"

namespace ptkit::api::python {

namespace {

using CpuidWords = std::array<std::uint32_t, 6>;  // leaf, sub-leaf, EAX, EBX, ECX, EDX
using StepTuple = std::tuple<std::string, std::uint64_t, std::uint64_t, std::string>;

const char* name_of(trace_unit::msr::Access access) {
  constexpr std::array kNames{"read", "write", "barrier", "memory", "apic"};
  return kNames.at(static_cast<std::size_t>(access));
}

const char* name_of(trace_unit::msr::Effect effect) {
  constexpr std::array kNames{"fault", "error", "nothing", "untraced"};
  return kNames.at(static_cast<std::size_t>(effect));
}

trace_unit::msr::Sequence sequence_of(const std::string& name) {
  constexpr std::array kNames{"start", "pause", "resume", "stop", "switch", "interrupt"};
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (name == kNames[i]) return static_cast<trace_unit::msr::Sequence>(i);
  }
  throw py::value_error("no sequence is called " + name);
}

std::vector<trace_unit::msr::CpuidRow> rows_of(const std::vector<CpuidWords>& words) {
  std::vector<trace_unit::msr::CpuidRow> rows;
  for (const CpuidWords& w : words) rows.push_back({w[0], w[1], w[2], w[3], w[4], w[5]});
  return rows;
}

trace_unit::msr::Capabilities capabilities_of(const std::optional<std::vector<CpuidWords>>& words) {
  return words.has_value() ? trace_unit::msr::capabilities(rows_of(*words)) : trace_unit::msr::Capabilities{};
}

template <typename T>
void take(const py::dict& fields, const char* name, T& value) {
  if (fields.contains(name)) value = fields[name].cast<T>();
}

trace_unit::msr::RtitConfig config_of(const py::dict& fields) {
  trace_unit::msr::RtitConfig config;
#define PT_CTL_FIELD(member, type, name, shift, width, reading, perf, set, clear) \
  take(fields, #member, config.member);
#include "trace_unit/msr/ctl.def"
#undef PT_CTL_FIELD
  take(fields, "status", config.status);
  take(fields, "output_base", config.output_base);
  take(fields, "output_mask_ptrs", config.output_mask_ptrs);
  take(fields, "cr3_match", config.cr3_match);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  take(fields, "addr", ranges);
  for (std::size_t i = 0; i < ranges.size() && i < config.addr.size(); ++i)
    config.addr[i] = {ranges[i].first, ranges[i].second};
  return config;
}

py::dict fields_of(const trace_unit::msr::RtitConfig& config) {
  py::dict fields;
#define PT_CTL_FIELD(member, type, name, shift, width, reading, perf, set, clear) \
  fields[#member] = config.member;
#include "trace_unit/msr/ctl.def"
#undef PT_CTL_FIELD
  fields["status"] = config.status;
  fields["output_base"] = config.output_base;
  fields["output_mask_ptrs"] = config.output_mask_ptrs;
  fields["cr3_match"] = config.cr3_match;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  for (const trace_unit::msr::AddressRange& range : config.addr) ranges.emplace_back(range.a, range.b);
  fields["addr"] = py::tuple(py::cast(ranges));
  return fields;
}

std::vector<StepTuple> tuples_of(const trace_unit::msr::MsrProgram& steps) {
  std::vector<StepTuple> out;
  for (const trace_unit::msr::MsrStep& step : steps)
    out.emplace_back(name_of(step.access), step.address, step.value, step.words);
  return out;
}

std::vector<std::tuple<std::uint32_t, std::string, std::string>> all_registers() {
  std::vector<std::tuple<std::uint32_t, std::string, std::string>> out;
  for (const trace_unit::msr::Register& row : trace_unit::msr::registers()) {
    for (std::uint32_t i = 0; i < row.count; ++i) {
      const std::uint32_t number = row.number + i * row.stride;
      out.emplace_back(number, trace_unit::msr::register_name(row, i), std::string(row.words));
    }
  }
  return out;
}

py::dict registers_of(const py::dict& fields) {
  const trace_unit::msr::RegisterValues values = trace_unit::msr::values_of(config_of(fields));
  py::dict out;
  out["ctl"] = values.ctl;
  out["status"] = values.status;
  out["output_base"] = values.output_base;
  out["output_mask_ptrs"] = values.output_mask_ptrs;
  out["cr3_match"] = values.cr3_match;
  out["addr"] = py::tuple(py::cast(values.addr));
  return out;
}

using ViolationTuple = std::tuple<std::uint32_t, std::string, std::string, std::string, std::string>;

std::vector<ViolationTuple> tuples_of(const std::vector<trace_unit::msr::Violation>& violations) {
  std::vector<ViolationTuple> out;
  for (const trace_unit::msr::Violation& one : violations)
    out.emplace_back(one.msr, one.field, one.rule, one.section, name_of(one.effect));
  return out;
}

trace_unit::msr::RegisterValues values_of(const py::dict& registers) {
  trace_unit::msr::RegisterValues values;
  take(registers, "ctl", values.ctl);
  take(registers, "status", values.status);
  take(registers, "output_base", values.output_base);
  take(registers, "output_mask_ptrs", values.output_mask_ptrs);
  take(registers, "cr3_match", values.cr3_match);
  take(registers, "addr", values.addr);
  return values;
}

py::dict capability_words(const std::vector<CpuidWords>& words) {
  const auto rows = rows_of(words);
  const trace_unit::msr::Capabilities found = trace_unit::msr::capabilities(rows);
  py::dict out;
  out["present"] = trace_unit::msr::has_trace_unit(rows);
  out["cr3_filter"] = found.cr3_filter();
  out["psb_cyc"] = found.psb_cyc();
  out["mtc"] = found.mtc();
  out["ptwrite"] = found.ebx(PT_CPUID_14_EBX_PTWRITE);
  out["power_event"] = found.ebx(PT_CPUID_14_EBX_POWER_EVENT);
  out["psb_pmi_preservation"] = found.preservation();
  out["event_trace"] = found.ebx(PT_CPUID_14_EBX_EVENT_TRACE);
  out["tnt_disable"] = found.ebx(PT_CPUID_14_EBX_TNT_DISABLE);
  out["topa"] = found.topa();
  out["topa_multiple"] = found.topa_multiple();
  out["single_range"] = found.single_range();
  out["trace_transport"] = found.ecx(PT_CPUID_14_ECX_TRACE_TRANSPORT);
  out["address_ranges"] = found.ranges();
  out["mtc_periods"] = found.mtc_periods();
  out["cyc_thresholds"] = found.cyc_thresholds();
  out["psb_periods"] = found.psb_periods();
  out["physical_bits"] = found.physical_bits;
  out["linear_bits"] = found.linear_bits;
  out["tsc_ctc_numerator"] = found.tsc_ctc_numerator;
  out["tsc_ctc_denominator"] = found.tsc_ctc_denominator;
  out["crystal_hz"] = found.crystal_hz;
  return out;
}

py::tuple output_of(base::Result<trace_unit::msr::OutputPlan> result) {
  const trace_unit::msr::OutputPlan plan = value_or_raise(std::move(result));
  return py::make_tuple(plan.base, plan.mask_ptrs, tuples_of(plan.memory), plan.bytes);
}

void register_outputs(py::module_& module) {
  module.def(
      "msr_single_range",
      [](std::uint64_t base, std::uint64_t bytes) {
        return output_of(trace_unit::msr::plan_single_range({.base = base, .bytes = bytes}));
      },
      py::arg("base"), py::arg("bytes"), "OUTPUT_BASE, OUTPUT_MASK_PTRS, memory to write, bytes.");
  module.def(
      "msr_topa",
      [](std::uint64_t table, const std::vector<std::pair<std::uint64_t, std::uint64_t>>& regions,
         std::uint64_t interrupt_bytes, bool ring, std::uint8_t largest_size,
         const std::optional<std::vector<CpuidWords>>& cpuid) {
        std::vector<trace_unit::msr::Region> wanted;
        for (const auto& [base, bytes] : regions) wanted.push_back({.base = base, .bytes = bytes});
        return output_of(trace_unit::msr::plan_topa(
            table, wanted, {.interrupt_bytes = interrupt_bytes, .ring = ring, .largest_size = largest_size},
            capabilities_of(cpuid)));
      },
      py::arg("table"), py::arg("regions"), py::arg("interrupt_bytes"), py::arg("ring"),
      py::arg("largest_size"), py::arg("cpuid"), "OUTPUT_BASE, OUTPUT_MASK_PTRS, memory to write, bytes.");
}

void register_bts(py::module_& module) {
  module.def(
      "msr_bts",
      [](std::uint64_t area, std::uint64_t buffer, std::uint64_t bytes, std::uint64_t reserve, bool os,
         bool user, bool bits32, bool netburst) {
        const trace_unit::msr::BtsPlan plan =
            value_or_raise(trace_unit::msr::plan_bts({.area = area,
                                                      .buffer = {.base = buffer, .bytes = bytes},
                                                      .reserve = reserve,
                                                      .os = os,
                                                      .user = user,
                                                      .bits32 = bits32,
                                                      .netburst = netburst}));
        return py::make_tuple(tuples_of(plan.memory), tuples_of(plan.start), tuples_of(plan.interrupt),
                              tuples_of(plan.stop));
      },
      py::arg("area"), py::arg("buffer"), py::arg("bytes"), py::arg("reserve"), py::kw_only(), py::arg("os"),
      py::arg("user"), py::arg("bits32"), py::arg("netburst"),
      "Memory to write, and the steps that start Branch Trace Store, serve its interrupt, and stop it.");
}

void register_perf(py::module_& module) {
  module.def(
      "msr_from_perf",
      [](const std::string& text) {
        const trace_unit::msr::PerfEvent event = value_or_raise(trace_unit::msr::parse_perf(text));
        return fields_of(value_or_raise(trace_unit::msr::config_of_perf(event)));
      },
      py::arg("text"), "Fields of an event in perf's words.");
  module.def(
      "msr_to_perf",
      [](const py::dict& fields) {
        const trace_unit::msr::PerfTranslation made = trace_unit::msr::perf_of(config_of(fields));
        return py::make_tuple(trace_unit::msr::perf_text(made.event), made.event.config, made.lost);
      },
      py::arg("fields"), "The event in perf's words, its config, and fields that perf cannot express.");
}

}  // namespace

void register_msr(py::module_& module) {
  module.def("msr_registers", &all_registers, "Number, name and words of every register of the model.");
  module.def(
      "msr_explain",
      [](const std::string& name, std::uint64_t value) {
        std::vector<std::tuple<std::string, int, int, std::uint64_t, std::string>> out;
        for (const trace_unit::msr::FieldValue& field : trace_unit::msr::explain(
                 trace_unit::msr::register_named(name).value_or(trace_unit::msr::NamedRegister{}), value))
          out.emplace_back(field.name, field.first, field.width, field.value, field.words);
        return out;
      },
      py::arg("name"), py::arg("value"), "Name, first bit, width, value and words of every field.");
  module.def(
      "msr_cpuid",
      [] {
        std::vector<CpuidWords> words;
        for (const trace_unit::msr::CpuidRow& row : trace_unit::msr::read_cpuid())
          words.push_back({row.leaf, row.subleaf, row.eax, row.ebx, row.ecx, row.edx});
        return words;
      },
      "The words of this processor that concern tracing.");
  module.def("msr_capabilities", &capability_words, py::arg("cpuid"), "Capabilities in words of CPUID.");
  module.def("msr_values", &registers_of, py::arg("fields"), "Values of the registers.");
  module.def(
      "msr_fields", [](std::uint64_t ctl) { return fields_of(trace_unit::msr::config_of({.ctl = ctl})); },
      py::arg("ctl"), "Fields of a value of IA32_RTIT_CTL.");
  module.def(
      "msr_check",
      [](const py::dict& fields, const std::optional<std::vector<CpuidWords>>& cpuid) {
        return tuples_of(trace_unit::msr::check(config_of(fields), capabilities_of(cpuid)));
      },
      py::arg("fields"), py::arg("cpuid"), "Register, field, rule, section and effect of every violation.");
  module.def(
      "msr_check_values",
      [](const py::dict& registers, const std::optional<std::vector<CpuidWords>>& cpuid) {
        return tuples_of(trace_unit::msr::check(values_of(registers), capabilities_of(cpuid)));
      },
      py::arg("registers"), py::arg("cpuid"), "The same of values of registers, reserved bits too.");
  module.def(
      "msr_program",
      [](const std::string& sequence, const py::dict& fields, const std::optional<py::dict>& next) {
        const trace_unit::msr::RegisterValues values = trace_unit::msr::values_of(config_of(fields));
        return tuples_of(trace_unit::msr::program(
            sequence_of(sequence), values,
            next.has_value() ? trace_unit::msr::values_of(config_of(*next)) : values));
      },
      py::arg("sequence"), py::arg("fields"), py::arg("next"),
      "Access, address, value and words of each step.");
  register_outputs(module);
  register_bts(module);
  register_perf(module);
}

}  // namespace ptkit::api::python
