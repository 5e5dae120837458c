// What the drivers of Linux and Windows have in common (ptkit_abi.h), for their fakes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/bytes.h"
#include "ptkit/ptkit_abi.h"

namespace ptkit::capture::test {

// A driver with all features on a processor with all of them.
inline ptkit_query capable_query() {
  ptkit_query query{};
  query.abi = PTKIT_ABI;
  query.features = (PTKIT_FEATURE_VMX << 1U) - 1;
  query.cpuid_1_eax = 0x506e3;
  query.cpuid_14_0[0] = 1;
  query.cpuid_14_0[1] = 0x1ff;
  query.cpuid_14_0[2] = 0x7;
  query.cpuid_14_1[0] = 0x02490004;  // four ranges; MTC periods 0, 3, 6, 9
  query.cpuid_14_1[1] = 0x003f3fff;  // PSB periods 0 to 5; CYC thresholds 0 to 13
  query.cpuid_15[0] = 2;
  query.cpuid_15[1] = 250;
  query.physical_bits = 46;
  query.tsc_khz = 3000000;
  query.cpus = 2;
  query.most_bytes = std::uint64_t{1} << 32U;
  return query;
}

// A record of the sideband as its bytes: `record`, which begins with a struct ptkit_record, and `text`.
template <typename Record>
std::vector<std::uint8_t> record_bytes(Record record, base::Bytes text) {
  const std::size_t size = (sizeof record + text.size() + 7) / 8 * 8;
  reinterpret_cast<ptkit_record*>(&record)->size = static_cast<std::uint16_t>(size);
  std::vector<std::uint8_t> out(size);
  std::memcpy(out.data(), &record, sizeof record);
  std::copy(text.begin(), text.end(), out.begin() + sizeof record);
  return out;
}

}  // namespace ptkit::capture::test
