// The instruction set that SIMD kernels use.
#include <algorithm>
#include <cstdlib>

#include "api/python/bindings.h"
#include "base/cpu/isa.h"

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

}  // namespace

void register_isa(py::module_& module) {
  module.def("isas", &available_isas, "Instruction sets that kernels can use here, the best first.");
  module.def("isa", &chosen_isa, "The one that they use: the best, or what PTKIT_FORCE_ISA names.");
}

}  // namespace ptkit::api::python
