#include "packet/tokens.h"

#include <algorithm>

#include "packet/scan_kernels.h"

namespace ptkit::packet {
namespace scan {

static_assert(kRowTables.odd_token[(0x2d | 1) >> 2] == (TOKEN_TIP | TOKEN_HAS_IP));
static_assert(kRowTables.odd_token[TOKEN_PGD >> 2] == TOKEN_PGD);

namespace {

bool tells_time(PacketKind kind) noexcept {
  return kind == PacketKind::CYC || kind == PacketKind::MTC || kind == PacketKind::TSC ||
         kind == PacketKind::TMA;
}

bool is_token(PacketKind kind) noexcept { return kind == PacketKind::TNT_8 || has_ip_payload(kind); }

// False: a packet of another kind.
bool put_token(const std::uint8_t* at, const Packet& packet, const TokenArrays& arrays,
               Tokens& tokens) noexcept {
  if (packet.kind == PacketKind::PAD) return true;
  if (tells_time(packet.kind)) {
    tokens.timed = true;
    return true;
  }
  if (!is_token(packet.kind)) return false;
  const bool has_ip = (packet.flags & Packet::IP_KNOWN) != 0;
  const auto offset = static_cast<std::uint32_t>(packet.offset - tokens.begin);
  arrays.offset[tokens.count] = offset | (tokens.timed ? kTokenTimed : 0);
  arrays.code[tokens.count] = packet.kind == PacketKind::TNT_8 ? *at : kRowTables.odd_token[*at >> 2];
  if (has_ip) arrays.ip[tokens.ips++] = packet.ip;
  ++tokens.count;
  tokens.timed = false;
  return true;
}

// One packet by PacketDecoder; false: a packet of another kind, an error or the end.
bool read_one(base::Bytes stream, DecoderState& state, const Errata& errata, const TokenArrays& arrays,
              Tokens& tokens) noexcept {
  PacketDecoder decoder(stream, state, errata);
  Packet packet;
  if (decoder.next(packet) != base::Status::OK) return false;
  if (!put_token(stream.data() + packet.offset, packet, arrays, tokens)) return false;
  state = decoder.state();
  return true;
}

}  // namespace

void tokens_scalar(base::Bytes stream, DecoderState& state, bool skd007, std::uint64_t limit,
                   const TokenArrays& arrays, Tokens& tokens) noexcept {
  while (tokens.count < arrays.room && state.position < limit &&
         state.position + kLeastBytes <= stream.size()) {
    const std::uint8_t* const at = stream.data() + state.position;
    if (*at == 0) {
      ++state.position;
      continue;
    }
    Packet packet;
    packet.offset = state.position;
    if (!read_hot(at, skd007, state, packet)) return;
    static_cast<void>(put_token(at, packet, arrays, tokens));
    state.position += packet.size;
  }
}

}  // namespace scan

Tokens read_tokens(base::Bytes stream, DecoderState& state, const Errata& errata, std::uint64_t limit,
                   const TokenArrays& arrays, simd::Isa isa) noexcept {
  constexpr std::uint64_t kMostBytes = 65536 - 256;
  scan::TokenKernel kernel = scan::tokens_scalar;
#if PT_SIMD_X86
  if (isa == simd::Isa::AVX512) kernel = scan::tokens_avx512;
#endif
  static_cast<void>(isa);
  Tokens tokens;
  tokens.begin = state.position;
  if (!state.last_ip_known || state.in_psb || state.block_open) {
    tokens.other = true;
    return tokens;
  }
  limit = std::min({limit, std::uint64_t{stream.size()}, tokens.begin + kMostBytes});
  do {
    kernel(stream, state, errata.skd007, limit, arrays, tokens);
    if (tokens.count >= arrays.room || (state.position >= limit && limit < stream.size())) return tokens;
  } while (scan::read_one(stream, state, errata, arrays, tokens));
  tokens.other = true;
  return tokens;
}

}  // namespace ptkit::packet
