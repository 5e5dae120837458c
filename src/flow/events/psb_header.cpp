#include "flow/events/psb_header.h"

#include "flow/events/plain_packets.h"

namespace ptkit::flow {

namespace {

constexpr std::uint64_t kPsbWord = 0x8202820282028202ULL;
constexpr std::size_t kPsbSize = 16;
constexpr std::uint8_t kMode = 0x99;
constexpr std::uint8_t kModeExecLeaf = 0;
constexpr std::uint8_t kModeTsxLeaf = 1;
// Second bytes, after kEscape.
constexpr std::uint8_t kCbr = 0x03;
constexpr std::uint8_t kPsbend = 0x23;
constexpr std::uint8_t kPip = 0x43;
constexpr std::uint8_t kVmcs = 0xc8;
constexpr std::size_t kCbrSize = 4;
constexpr std::size_t kPipSize = 8;
constexpr std::size_t kVmcsSize = 7;

// Number of events of a MODE packet; 0: it has new state.
unsigned mode_events(std::uint8_t payload, const PsbKnown& known) noexcept {
  constexpr unsigned kLeaf = 5;
  if (payload >> kLeaf == kModeExecLeaf) return (payload & 7U) == known.mode ? known.mode_events : 0;
  if (payload >> kLeaf == kModeTsxLeaf) return (payload & 3U) == 0 ? 1 : 0;
  return 0;
}

// Skips a packet of the header. False: it is not allowed there, or has new state.
bool skip_state(const std::uint8_t*& at, const PsbKnown& known, PsbHeader& out) noexcept {
  if (at[0] == kMode) {
    const unsigned events = mode_events(at[1], known);
    out.events += events;
    at += 2;
    return events != 0;
  }
  if (at[0] == kEscape) {
    ++out.events;
    switch (at[1]) {
      case kCbr:
        at += kCbrSize;
        return true;
      case kVmcs:
        at += kVmcsSize;
        return true;
      case kPip:
        if (known.pip == nullptr || std::memcmp(at, known.pip, kPipSize) != 0) return false;
        at += kPipSize;
        return true;
      default:
        return false;
    }
  }
  const IpForm& form = kIpForms[at[0] >> 5U];
  if ((at[0] & kKindBits) != kFupKind || form.size <= 1 || out.on) return false;
  out.on = true;
  out.ip = ip_of(form, at, 0);
  at += form.size;
  return true;
}

// Erratum BDM70: packets are disabled before a TIP.PGE, whatever the PSB+ reports.
bool no_pge_follows(const std::uint8_t* at, const std::uint8_t* end) noexcept {
  while (at < end) {
    if (at[0] == 0) {
      ++at;
      continue;
    }
    if (skip_timing(at)) continue;
    const bool tnt = (at[0] & 1U) == 0 && at[0] != kEscape;
    const std::uint8_t kind = at[0] & kKindBits;
    return tnt || kind == kTipKind || kind == kPgdKind || kind == kFupKind;
  }
  return false;
}

}  // namespace

bool read_psb(const std::uint8_t* at, const std::uint8_t* end, const PsbKnown& known,
              PsbHeader& out) noexcept {
  if (!known.any || end < at || static_cast<std::size_t>(end - at) < kPsbSize) return false;
  if (load<std::uint64_t>(at) != kPsbWord || load<std::uint64_t>(at + 8) != kPsbWord) return false;
  out = PsbHeader{};
  out.events = 1;  // packets are enabled, or disabled
  at += kPsbSize;
  while (at < end) {
    if (at[0] == 0) {
      ++at;
    } else if (at[0] == kEscape && at[1] == kPsbend) {
      out.psbend = at;
      return !out.on || no_pge_follows(at + kPsbendSize, end);
    } else if (!skip_timing(at) && !skip_state(at, known, out)) {
      return false;
    }
  }
  return false;
}

}  // namespace ptkit::flow
