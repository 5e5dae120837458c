#include "capture/common/cpu_info.h"

#include <cpuid.h>

#include <array>
#include <cstring>

namespace ptkit::capture {

namespace {

bool is_intel() noexcept {
  std::array<unsigned, 4> leaf{};
  if (__get_cpuid(0, &leaf[0], &leaf[1], &leaf[2], &leaf[3]) == 0) return true;
  return leaf[1] == signature_INTEL_ebx && leaf[2] == signature_INTEL_ecx && leaf[3] == signature_INTEL_edx;
}

}  // namespace

trace::Cpu this_processor() noexcept {
  std::array<unsigned, 4> leaf{};
  if (__get_cpuid(1, &leaf[0], &leaf[1], &leaf[2], &leaf[3]) != 0) return processor_of(leaf[0]);
  trace::Cpu cpu;
  cpu.intel = is_intel();
  return cpu;
}

// CPUID leaf 1, EAX: stepping 3:0, model 7:4, family 11:8, extended model 19:16, extended family 27:20.
trace::Cpu processor_of(std::uint32_t signature) noexcept {
  trace::Cpu cpu;
  cpu.intel = is_intel();
  const unsigned family = (signature >> 8U) & 0xfU;
  const unsigned model = (signature >> 4U) & 0xfU;
  cpu.family = static_cast<std::uint16_t>(family == 0xf ? family + ((signature >> 20U) & 0xffU) : family);
  cpu.model = static_cast<std::uint16_t>(family >= 6 ? model | ((signature >> 12U) & 0xf0U) : model);
  cpu.stepping = static_cast<std::uint8_t>(signature & 0xfU);
  cpu.known = true;
  return cpu;
}

std::string processor_name() {
  std::array<unsigned, 12> words{};
  for (unsigned i = 0; i < 3; ++i) {
    unsigned* leaf = &words[std::size_t{4} * i];
    if (__get_cpuid(0x80000002U + i, &leaf[0], &leaf[1], &leaf[2], &leaf[3]) == 0) return "unknown processor";
  }
  std::array<char, sizeof words + 1> text{};
  std::memcpy(text.data(), words.data(), sizeof words);
  const std::string name(text.data());
  const auto first = name.find_first_not_of(' ');
  return first == std::string::npos ? "unknown processor"
                                    : name.substr(first, name.find_last_not_of(' ') - first + 1);
}

}  // namespace ptkit::capture
