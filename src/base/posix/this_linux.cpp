#include "base/system/this_linux.h"

#include <elf.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <array>

namespace ptkit::base {

std::string linux_host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : std::string();
}

Bytes linux_vdso() noexcept {
  const auto* const at = reinterpret_cast<const std::uint8_t*>(::getauxval(AT_SYSINFO_EHDR));
  if (at == nullptr) return {};
  const auto* const header = reinterpret_cast<const Elf64_Ehdr*>(at);
  return {at, header->e_shoff + std::size_t{header->e_shnum} * header->e_shentsize};
}

}  // namespace ptkit::base
