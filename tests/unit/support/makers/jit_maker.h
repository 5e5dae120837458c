// Builds jitdump files (tools/perf/Documentation/jitdump-specification.txt).
#pragma once

#include <cstdint>
#include <string>

#include "perf_sample.h"

namespace ptkit::formats::test {

inline std::string jit_record(std::uint32_t id, std::uint64_t time, const Bytes& body) {
  return Bytes().add(id, static_cast<std::uint32_t>(16 + body.size()), time).raw(body.str()).str();
}
inline std::string jit_load(std::uint64_t tsc, std::uint64_t address, std::uint64_t index,
                            const std::string& name, const std::string& code) {
  Bytes body;
  body.add(std::uint32_t{10}, std::uint32_t{10}, address, address, static_cast<std::uint64_t>(code.size()),
           index);
  body.raw(name + '\0' + code);
  return jit_record(0, tsc, body);
}
inline std::string jit_move(std::uint64_t tsc, std::uint64_t to, std::uint64_t size, std::uint64_t index) {
  Bytes body;
  body.add(std::uint32_t{10}, std::uint32_t{10}, to, std::uint64_t{0}, to, size, index);
  return jit_record(1, tsc, body);
}
inline std::string jit_header(std::uint64_t flags) {
  return Bytes()
      .add(std::uint32_t{0x4A695444}, std::uint32_t{1}, std::uint32_t{40}, std::uint32_t{62},
           std::uint32_t{0}, std::uint32_t{10}, std::uint64_t{1}, flags)
      .str();
}

}  // namespace ptkit::formats::test
