// Must not compile with PTKIT_CONFLICT: two rows own the first byte d9. Must compile without it.
#include "packet/opcodes.h"

using namespace ptkit::packet;

#ifdef PTKIT_CONFLICT
constexpr std::uint8_t kOther = 0xd9;
#else
constexpr std::uint8_t kOther = 0x05;
#endif

constexpr PacketRow row_with(std::uint8_t match) {
  PacketRow row = row_of(PacketKind::TRIG);
  row.match = match;
  return row;
}

constexpr auto kTables =
    detail::build_tables(std::array{row_of(PacketKind::TRIG), row_with(kOther)}, std::array<EscapeRow, 0>{});
static_assert(kTables[0][kOther] == static_cast<OpcodeEntry>(PacketKind::TRIG));

int main() { return 0; }
