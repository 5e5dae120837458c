// Byte-level readers for packets that need no context. They read up to 16 bytes after a packet's first byte.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ptkit::flow {

// First byte of an IP packet: bits 4:0 are the kind, bits 7:5 the form of the IP (IPBytes).
inline constexpr std::uint8_t kKindBits = 0x1f;
inline constexpr std::uint8_t kTipKind = 0x0d;
inline constexpr std::uint8_t kPgeKind = 0x11;
inline constexpr std::uint8_t kPgdKind = 0x01;
inline constexpr std::uint8_t kFupKind = 0x1d;

inline constexpr std::uint8_t kEscape = 0x02;  // first byte of TNT-64, PSB, PSBEND, PIP, ...
inline constexpr std::size_t kPsbendSize = 2;
inline constexpr std::size_t kLongTntSize = 8;
[[nodiscard]] inline bool is_long_tnt(const std::uint8_t* at) noexcept {
  return at[0] == kEscape && at[1] == 0xa3;
}
// True if a TNT packet has fewer than its 6 or 47 bits. A processor may emit such a packet at any time (SDM,
// "Taken/Not-taken (TNT) Packet"). It emits a full one with the last branch.
[[nodiscard]] inline bool is_partial_tnt(const std::uint8_t* at) noexcept {
  return (at[0] == kEscape ? at[kLongTntSize - 1] : at[0]) < 0x80;
}
// True for a TNT packet that is not full, and for a TIP, which may be deferred and emitted with such a TNT
// packet. Later branches may be older than these packets.
[[nodiscard]] inline bool may_be_late(const std::uint8_t* at) noexcept {
  return (at[0] & kKindBits) == kTipKind || is_partial_tnt(at);
}

struct alignas(32) IpForm {
  std::uint64_t take = 0;  // bits from the packet
  std::uint64_t keep = 0;  // bits from the last IP
  std::uint8_t size = 0;   // size of the packet; 0: reserved
  std::uint8_t shift = 0;  // sign extension
};
inline constexpr std::array<IpForm, 8> kIpForms = {{
    {0, 0, 1, 0},
    {0xffff, ~0xffffULL, 3, 0},
    {0xffffffff, ~0xffffffffULL, 5, 0},
    {0xffffffffffffULL, 0, 7, 16},
    {0xffffffffffffULL, ~0xffffffffffffULL, 7, 0},
    {},
    {~0ULL, 0, 9, 0},
    {},
}};

template <typename T>
[[nodiscard]] inline T load(const std::uint8_t* at) noexcept {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

[[nodiscard]] inline std::uint64_t ip_of(const IpForm& form, const std::uint8_t* at,
                                         std::uint64_t last) noexcept {
  const std::uint64_t raw = (load<std::uint64_t>(at + 1) & form.take) | (last & form.keep);
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(raw << form.shift) >> form.shift);
}

[[nodiscard]] inline bool is_cyc(std::uint8_t first) noexcept { return (first & 3U) == 3; }

// Skips a timing packet. False: it is another packet.
[[nodiscard]] inline bool skip_timing(const std::uint8_t*& at) noexcept {
  constexpr std::uint8_t kMtc = 0x59;
  constexpr std::uint8_t kTsc = 0x19;
  constexpr std::uint8_t kTma = 0x73;
  constexpr std::size_t kMostCyc = 15;  // a longer CYC is an error, or close to one
  const std::uint8_t first = at[0];
  if (is_cyc(first)) {
    if ((first & 4U) == 0) {
      ++at;
      return true;
    }
    std::size_t size = 2;
    while (size < kMostCyc && (at[size - 1] & 1U) != 0) ++size;
    // The simple decoder handles the maximum length, and erratum SKD007.
    if (size > 8 || (size == 2 && at[1] == 0x02 && at[2] == 0xf3)) return false;
    at += size;
    return true;
  }
  if (first == kMtc) {
    at += 2;
    return true;
  }
  if (first == kTsc) {
    at += 8;
    return true;
  }
  if (first == 2 && at[1] == kTma && at[4] == 0 && (at[6] & 0xfeU) == 0) {
    at += 7;
    return true;
  }
  return false;
}

// Size of a TNT packet, IP packet or PSBEND.
[[nodiscard]] inline std::size_t plain_size(const std::uint8_t* at) noexcept {
  if ((*at & 1U) != 0) return kIpForms[*at >> 5U].size;
  if (*at != kEscape) return 1;
  return is_long_tnt(at) ? kLongTntSize : kPsbendSize;
}

// True if there is a timing packet in [at, end), which has timing packets and PADs only.
[[nodiscard]] inline bool any_timing(const std::uint8_t* at, const std::uint8_t* end) noexcept {
  while (at < end && *at == 0) ++at;
  return at < end;
}

}  // namespace ptkit::flow
