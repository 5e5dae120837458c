// Bodies of perf's records.
#pragma once

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "fake_perf.h"

namespace ptkit::capture::test {

using Bytes = std::vector<std::uint8_t>;

inline Bytes ids(std::initializer_list<int> numbers) {
  Bytes out;
  for (const int one : numbers) FakeKernel::put(out, static_cast<std::uint32_t>(one), 4);
  return out;
}

constexpr int kFirst = 1 << 23;  // above the largest possible PID

// The body of an MMAP2 record of executable memory.
inline Bytes mapping(int pid, std::uint64_t address, std::uint64_t bytes, const std::string& path) {
  Bytes out;
  FakeKernel::put(out, static_cast<std::uint32_t>(pid), 4);
  FakeKernel::put(out, static_cast<std::uint32_t>(pid), 4);
  FakeKernel::put(out, address, 8);
  FakeKernel::put(out, bytes, 8);
  FakeKernel::put(out, 0, 8);
  struct stat file {};
  static_cast<void>(::stat(path.c_str(), &file));
  for (const unsigned one : {major(file.st_dev), minor(file.st_dev)}) FakeKernel::put(out, one, 4);
  for (const std::uint64_t one : {std::uint64_t{file.st_ino}, std::uint64_t{0}}) FakeKernel::put(out, one, 8);
  FakeKernel::put(out, 5, 4);  // PROT_READ | PROT_EXEC
  FakeKernel::put(out, 0, 4);
  out.insert(out.end(), path.begin(), path.end());
  out.push_back(0);
  return out;
}

// The body of a TEXT_POKE record.
inline Bytes poke(std::uint64_t address, const Bytes& before, const Bytes& after) {
  Bytes out;
  FakeKernel::put(out, address, 8);
  FakeKernel::put(out, before.size(), 2);
  FakeKernel::put(out, after.size(), 2);
  out.insert(out.end(), before.begin(), before.end());
  out.insert(out.end(), after.begin(), after.end());
  return out;
}

}  // namespace ptkit::capture::test
