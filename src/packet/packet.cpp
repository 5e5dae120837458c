#include "packet/packet.h"

#include <array>

namespace ptkit::packet {
namespace {

struct Texts {
  std::string_view identifier;
  std::string_view name;
  std::string_view text;
  std::string_view payload;
  std::string_view payload2;
};

constexpr std::array<Texts, kPacketKinds> kTexts{{
#define PT_PACKET(kind, name, table, mask, match, claim, least, size, shape, block, psb, ovf, bulk, text, \
                  payload, payload2)                                                                      \
  {#kind, name, text, payload, payload2},
#include "packet/packets.def"
}};

constexpr Texts kUnknown{"?", "?", "", "", ""};

const Texts& texts_of(PacketKind kind) noexcept {
  const auto index = static_cast<std::size_t>(kind);
  return index < kTexts.size() ? kTexts[index] : kUnknown;
}

}  // namespace

std::string_view packet_name(PacketKind kind) noexcept { return texts_of(kind).name; }
std::string_view packet_identifier(PacketKind kind) noexcept { return texts_of(kind).identifier; }
std::string_view packet_text(PacketKind kind) noexcept { return texts_of(kind).text; }
std::string_view packet_payload_text(PacketKind kind) noexcept { return texts_of(kind).payload; }
std::string_view packet_payload2_text(PacketKind kind) noexcept { return texts_of(kind).payload2; }

}  // namespace ptkit::packet
