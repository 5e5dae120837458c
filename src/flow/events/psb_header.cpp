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

constexpr unsigned kLeaf = 5;  // shift of a MODE packet's leaf

bool is_known_mode(std::uint8_t payload, const PsbKnown& known) noexcept {
  return payload >> kLeaf == kModeExecLeaf && (payload & 7U) == known.mode;
}

// Number of events of a MODE packet; 0: it has new state.
unsigned mode_events(std::uint8_t payload, const PsbKnown& known) noexcept {
  if (is_known_mode(payload, known)) return known.mode_events;
  return payload >> kLeaf == kModeTsxLeaf && (payload & 3U) == 0 ? 1 : 0;
}

// Skips a packet of the header. False: it is not allowed there, or has new state.
bool skip_state(const std::uint8_t*& at, const PsbKnown& known, PsbHeader& out) noexcept {
  if (at[0] == kMode) {
    const unsigned events = mode_events(at[1], known);
    out.events += events;
    at += kModeSize;
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

// Erratum BDM70: packets are disabled before a TIP.PGE, whatever the PSB+ reports. Sets `on`. False: none of
// the packets before `end` shows it.
bool find_out_if_on(const std::uint8_t* at, const std::uint8_t* end, bool& on) noexcept {
  while (at < end) {
    if (at[0] == 0) {
      ++at;
      continue;
    }
    if (skip_timing(at)) continue;
    const bool tnt = (at[0] & 1U) == 0 && at[0] != kEscape;
    const std::uint8_t kind = at[0] & kKindBits;
    on = kind != kPgeKind;
    if (!on) return kIpForms[at[0] >> 5U].size != 0;
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
      return !out.on || find_out_if_on(at + kPsbendSize, end, out.on);
    } else if (!skip_timing(at) && !skip_state(at, known, out)) {
      return false;
    }
  }
  return false;
}

bool repeats_exec_mode(const std::uint8_t* at, const PsbKnown& known) noexcept {
  return known.any && at[0] == kMode && is_known_mode(at[1], known);
}

}  // namespace ptkit::flow
