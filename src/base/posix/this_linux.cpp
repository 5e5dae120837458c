#include "base/system/this_linux.h"

#include <elf.h>
#include <sys/auxv.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>

namespace ptkit::base {

std::string linux_host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : std::string();
}

std::uint64_t linux_device(std::uint32_t major, std::uint32_t minor) noexcept {
  return makedev(major, minor);
}

std::uint32_t linux_cpus() noexcept {
  const long count = ::sysconf(_SC_NPROCESSORS_CONF);
  return count > 0 ? static_cast<std::uint32_t>(count) : 0;
}

Bytes linux_vdso() noexcept {
  const auto* const at = reinterpret_cast<const std::uint8_t*>(::getauxval(AT_SYSINFO_EHDR));
  if (at == nullptr) return {};
  const auto* const header = reinterpret_cast<const Elf64_Ehdr*>(at);
  return {at, header->e_shoff + std::size_t{header->e_shnum} * header->e_shentsize};
}

}  // namespace ptkit::base
