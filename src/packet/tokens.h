// What moves control flow in a stream, without what does not: TNT.8 and IP packets as tokens; PADs and
// packets that tell time are dropped.
#pragma once

#include "packet/scan.h"

namespace ptkit::packet {

// A token's code is the byte of a TNT.8 (even), or for IP packets the low five bits of their first byte, and
// TOKEN_HAS_IP.
enum TokenCode : std::uint8_t {
  TOKEN_PGD = 0x01,
  TOKEN_TIP = 0x0d,
  TOKEN_PGE = 0x11,
  TOKEN_FUP = 0x1d,
  TOKEN_KIND = 0x1f,    // mask
  TOKEN_HAS_IP = 0x20,  // the next one of `ip` belongs to it
};

inline constexpr std::uint32_t kTokenTimed = std::uint32_t{1} << 31;

// Arrays of the caller, with room for `room` tokens and kTokenSlack more.
struct TokenArrays {
  std::uint32_t* offset =
      nullptr;  // from Tokens::begin; kTokenTimed: a packet dropped right before tells time
  std::uint8_t* code = nullptr;
  std::uint64_t* ip = nullptr;  // rebuilt, one per token that has one
  std::size_t room = 0;
};
inline constexpr std::size_t kTokenSlack = 64;

struct Tokens {
  std::uint64_t begin = 0;
  std::size_t count = 0;
  std::size_t ips = 0;
  bool other = false;  // at the state's position is a packet of another kind, an error, or the end
  bool timed = false;  // packets that tell time lie behind the last token
};

// Reads tokens from `state` on, up to some 64 KiB of the stream or about as far as `limit`, and moves the
// state. Nothing is read before the last IP is known, in a PSB+ header, or in a block.
[[nodiscard]] Tokens read_tokens(base::Bytes stream, DecoderState& state, const Errata& errata,
                                 std::uint64_t limit, const TokenArrays& arrays,
                                 simd::Isa isa = simd::isa_choice().isa) noexcept;

}  // namespace ptkit::packet
