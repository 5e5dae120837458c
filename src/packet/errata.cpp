#include "packet/errata.h"

#include <algorithm>
#include <array>

namespace ptkit::packet {
namespace {

// Group of models with the same errata.
enum class Core : std::uint8_t {
  BROADWELL,
  SKYLAKE,
  ICE_LAKE_SERVER,
  SAPPHIRE_RAPIDS,
  ICE_LAKE,
  HYBRID,
  GOLDMONT,
  LATER_ATOM
};

struct Model {
  std::uint8_t family;
  std::uint8_t model;
  Core core;
};

// Sorted by family and model. Hybrid CPUs have the errata of both kinds of cores, because a stream does not
// show the kind.
constexpr auto kModels = std::to_array<Model>({
    {0x06, 0x3d, Core::BROADWELL},        // Broadwell
    {0x06, 0x47, Core::BROADWELL},        // Broadwell with GT3e
    {0x06, 0x4e, Core::SKYLAKE},          // Skylake mobile
    {0x06, 0x4f, Core::BROADWELL},        // Broadwell server
    {0x06, 0x55, Core::ICE_LAKE_SERVER},  // Skylake, Cascade Lake and Cooper Lake server
    {0x06, 0x56, Core::BROADWELL},        // Broadwell-D
    {0x06, 0x5c, Core::GOLDMONT},         // Apollo Lake
    {0x06, 0x5e, Core::SKYLAKE},          // Skylake desktop
    {0x06, 0x5f, Core::GOLDMONT},         // Denverton
    {0x06, 0x66, Core::ICE_LAKE},         // Cannon Lake
    {0x06, 0x6a, Core::ICE_LAKE_SERVER},  // Ice Lake server
    {0x06, 0x6c, Core::ICE_LAKE_SERVER},  // Ice Lake-D
    {0x06, 0x7a, Core::LATER_ATOM},       // Gemini Lake
    {0x06, 0x7d, Core::ICE_LAKE},         // Ice Lake desktop
    {0x06, 0x7e, Core::ICE_LAKE},         // Ice Lake mobile
    {0x06, 0x86, Core::LATER_ATOM},       // Snow Ridge
    {0x06, 0x8c, Core::ICE_LAKE},         // Tiger Lake mobile
    {0x06, 0x8d, Core::ICE_LAKE},         // Tiger Lake
    {0x06, 0x8e, Core::SKYLAKE},          // Kaby Lake mobile and its successors
    {0x06, 0x8f, Core::SAPPHIRE_RAPIDS},  // Sapphire Rapids
    {0x06, 0x96, Core::LATER_ATOM},       // Elkhart Lake
    {0x06, 0x97, Core::HYBRID},           // Alder Lake
    {0x06, 0x9a, Core::HYBRID},           // Alder Lake mobile
    {0x06, 0x9c, Core::LATER_ATOM},       // Jasper Lake
    {0x06, 0x9e, Core::SKYLAKE},          // Kaby Lake and Coffee Lake desktop
    {0x06, 0xa5, Core::SKYLAKE},          // Comet Lake
    {0x06, 0xa6, Core::SKYLAKE},          // Comet Lake mobile
    {0x06, 0xa7, Core::ICE_LAKE},         // Rocket Lake
    {0x06, 0xa8, Core::ICE_LAKE},         // Rocket Lake mobile
    {0x06, 0xaa, Core::HYBRID},           // Meteor Lake mobile
    {0x06, 0xac, Core::HYBRID},           // Meteor Lake
    {0x06, 0xad, Core::SAPPHIRE_RAPIDS},  // Granite Rapids
    {0x06, 0xae, Core::SAPPHIRE_RAPIDS},  // Granite Rapids-D
    {0x06, 0xaf, Core::LATER_ATOM},       // Sierra Forest
    {0x06, 0xb5, Core::HYBRID},           // Arrow Lake-U
    {0x06, 0xb6, Core::LATER_ATOM},       // Grand Ridge
    {0x06, 0xb7, Core::HYBRID},           // Raptor Lake
    {0x06, 0xba, Core::HYBRID},           // Raptor Lake mobile
    {0x06, 0xbd, Core::HYBRID},           // Lunar Lake
    {0x06, 0xbf, Core::HYBRID},           // Raptor Lake-S
    {0x06, 0xc5, Core::HYBRID},           // Arrow Lake-H
    {0x06, 0xc6, Core::HYBRID},           // Arrow Lake
    {0x06, 0xcc, Core::HYBRID},           // Panther Lake
    {0x06, 0xcf, Core::SAPPHIRE_RAPIDS},  // Emerald Rapids
    {0x06, 0xd5, Core::HYBRID},           // Wildcat Lake
    {0x06, 0xdd, Core::LATER_ATOM},       // Clearwater Forest
    {0x12, 0x01, Core::HYBRID},           // Nova Lake
    {0x12, 0x03, Core::HYBRID},           // Nova Lake mobile
    {0x13, 0x01, Core::SAPPHIRE_RAPIDS},  // Diamond Rapids
});

constexpr unsigned key(const Model& model) noexcept { return model.family * 256u + model.model; }

consteval bool models_are_sorted() {
  return std::is_sorted(kModels.begin(), kModels.end(),
                        [](const Model& a, const Model& b) { return key(a) <= key(b); });
}
static_assert(models_are_sorted());

const Model* find_model(const trace::Cpu& cpu) noexcept {
  if (!cpu.known || !cpu.intel) return nullptr;
  const auto found = std::find_if(kModels.begin(), kModels.end(), [&cpu](const Model& model) {
    return model.family == cpu.family && model.model == cpu.model;
  });
  return found == kModels.end() ? nullptr : found;
}

constexpr Errata errata_of(Core core) noexcept {
  switch (core) {
    case Core::BROADWELL:
      return {.bdm64 = true, .bdm70 = true};
    case Core::SKYLAKE:
      return {.bdm70 = true, .skd007 = true, .skd010 = true, .skd022 = true, .skl014 = true, .skl168 = true};
    case Core::ICE_LAKE_SERVER:
      return {.bdm70 = true, .skd022 = true, .skl014 = true, .skz84 = true};
    case Core::SAPPHIRE_RAPIDS:
      return {.bdm70 = true, .skd022 = true, .skz84 = true};
    case Core::ICE_LAKE:
      return {.bdm70 = true, .skd022 = true, .skl014 = true};
    case Core::HYBRID:
      return {.bdm70 = true, .skd022 = true, .apl11 = true};
    case Core::GOLDMONT:
      return {.apl11 = true, .apl12 = true};
    case Core::LATER_ATOM:
      return {.apl11 = true};
  }
  return {};
}

constexpr Errata superset() noexcept {
  Errata all;
#define PT_ERRATUM(flag, name, what, remedy) all.flag = true;
#include "packet/errata.def"
#undef PT_ERRATUM
  return all;
}

}  // namespace

bool errata_known(const trace::Cpu& cpu) noexcept { return find_model(cpu) != nullptr; }

Errata errata_for(const trace::Cpu& cpu) noexcept {
  const Model* model = find_model(cpu);
  return model != nullptr ? errata_of(model->core) : superset();
}

}  // namespace ptkit::packet
