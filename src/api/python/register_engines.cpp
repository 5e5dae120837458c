// Engines of this build and this machine: the instruction set of SIMD kernels, and libipt.
#include <algorithm>
#include <cstdlib>

#include "api/python/bindings.h"
#include "base/cpu/isa.h"

#if PTKIT_HAVE_LIBIPT
#include "flow/libipt/decoder.h"
#endif

namespace ptkit::api::python {
namespace {

std::vector<std::string> available_isas() {
  std::vector<std::string> names;
  for (const base::cpu::Isa isa : base::cpu::kIsas) {
    if (base::cpu::isa_available(isa)) names.emplace_back(base::cpu::isa_name(isa));
  }
  std::reverse(names.begin(), names.end());
  return names;
}

std::string chosen_isa() {
  const base::cpu::IsaChoice& choice = base::cpu::isa_choice();
  if (choice.status != base::Status::OK) {
    const char* forced = std::getenv("PTKIT_FORCE_ISA");
    std::string names;
    for (const auto& name : available_isas()) names += (names.empty() ? "" : ", ") + name;
    raise_failure({choice.status, 0,
                   "PTKIT_FORCE_ISA=" + std::string(forced == nullptr ? "" : forced) +
                       " cannot be had: this machine has " + names});
  }
  return std::string(base::cpu::isa_name(choice.isa));
}

// (version of the loaded libipt, (major, minor) of its header at build time), or None.
py::object reference_version() {
#if PTKIT_HAVE_LIBIPT
  const unsigned header = flow::libipt::reference_header_version();
  return py::make_tuple(flow::libipt::reference_version(), py::make_tuple(header >> 8, header & 0xffU));
#else
  return py::none();
#endif
}

}  // namespace

void register_engines(py::module_& module) {
  module.def("isas", &available_isas,
             "Instruction sets that kernels can use on this processor, the best first.");
  module.def("isa", &chosen_isa, "The one that they use: the best, or what PTKIT_FORCE_ISA names.");
  module.def("reference_version", &reference_version,
             "(version, (major, minor) that this was built with) of libipt, None without it.");
}

}  // namespace ptkit::api::python
