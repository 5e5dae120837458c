// Files of a kernel as /proc has them: symbols, modules and memory.
#pragma once

#include <elf.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/addresses.h"
#include "capture/linux/sideband/kernel_code.h"

namespace ptkit::capture::test {

using base::kPageBytes;

// A fake /proc/kcore: the kernel's code, and a page of generated code.
inline std::string kcore(std::uint64_t made, char fill) {
  constexpr std::uint64_t kBytes = 0x2000;
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_phoff = sizeof header;
  header.e_phnum = 2;
  std::array<Elf64_Phdr, 2> segments{};
  segments[0].p_type = segments[1].p_type = PT_LOAD;
  segments[0].p_vaddr = 0xffffffff81000000;
  segments[1].p_vaddr = made;
  segments[0].p_offset = kPageBytes;
  segments[1].p_offset = kPageBytes + kBytes;
  segments[0].p_filesz = kBytes;
  segments[1].p_filesz = kPageBytes;
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  bytes.append(reinterpret_cast<const char*>(segments.data()), sizeof segments);
  bytes.resize(kPageBytes);
  return bytes + std::string(kBytes, 'k') + std::string(kPageBytes, fill);
}

class KernelCodeTest : public ::testing::Test {
 protected:
  KernelCodeTest() {
    std::filesystem::create_directories(folder_);
    write("symbols",
          "ffffffff81000000 T _stext\nffffffff81000010 t work\nffffffff81002000 T _etext\n"
          "ffffffff81002000 D data\nffffffffc0000000 t first\t[a_b]\nffffffffc0000020 t work\t[a_b]\n"
          "ffffffffc0001000 r table\t[a_b]\nffffffffc0011000 t ftrace_trampoline\t[__builtin__ftrace]\n");
    write("modules", "a_b 16384 0 - Live 0xffffffffc0000000 (OE)\n");
    files_ = {folder_ + "/symbols", folder_ + "/memory", folder_ + "/modules"};
  }
  ~KernelCodeTest() override { std::filesystem::remove_all(folder_); }
  KernelCodeTest(const KernelCodeTest&) = delete;
  KernelCodeTest& operator=(const KernelCodeTest&) = delete;

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << text;
  }

  std::string folder_ = "/tmp/ptkit-kernel-" + std::to_string(::getpid());
  KernelCode::Files files_;
};

}  // namespace ptkit::capture::test
