#include "calls/symbol_facts.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "insn/insn.h"
#include "symbol/row_views.h"

namespace ptkit::calls {
namespace {

using base::Bytes;
using insn::Insn;

constexpr std::size_t kLongestInsn = 15;

[[nodiscard]] bool begins_with(Bytes code, std::initializer_list<std::uint8_t> bytes) noexcept {
  return code.size() >= bytes.size() && std::equal(bytes.begin(), bytes.end(), code.begin());
}

[[nodiscard]] Bytes skip_endbr(Bytes code) noexcept {
  constexpr std::size_t kSize = 4;
  const bool any = begins_with(code, {0xf3, 0x0f, 0x1e, 0xfa}) || begins_with(code, {0xf3, 0x0f, 0x1e, 0xfb});
  return any ? code.subspan(kSize) : code;
}

[[nodiscard]] Bytes skip_bnd(Bytes code) noexcept {
  return begins_with(code, {0xf2}) ? code.subspan(1) : code;
}

// JMP through memory, by a register (of 32-bit code that does not depend on its address) or not.
[[nodiscard]] bool is_jump_through_memory(Bytes code) noexcept {
  code = skip_bnd(code);
  return begins_with(code, {0xff, 0x25}) || begins_with(code, {0xff, 0xa3});
}

// The first entry of a PLT, which jumps to the resolver: PUSH and JMP through the GOT.
[[nodiscard]] bool is_first_stub(Bytes code) noexcept {
  constexpr std::size_t kPushSize = 6;
  code = skip_endbr(code);
  const bool pushes = begins_with(code, {0xff, 0x35}) || begins_with(code, {0xff, 0xb3});
  return pushes && code.size() > kPushSize && is_jump_through_memory(code.subspan(kPushSize));
}

// The entries of a PLT: a jump through the GOT; or the number of a relocation and a jump to the first entry.
[[nodiscard]] bool is_stub(Bytes code) noexcept {
  constexpr std::size_t kPushSize = 5;
  code = skip_endbr(code);
  if (is_jump_through_memory(code)) return true;
  return begins_with(code, {0x68}) && code.size() > kPushSize &&
         begins_with(skip_bnd(code.subspan(kPushSize)), {0xe9});
}

[[nodiscard]] bool is_any_of(std::string_view name, std::initializer_list<std::string_view> names) noexcept {
  return std::find(names.begin(), names.end(), name.substr(0, name.find('@'))) != names.end();
}

[[nodiscard]] std::uint16_t flags_of(std::string_view name) noexcept {
  std::uint16_t flags = 0;
  if (name.find(".cold") != std::string_view::npos) flags |= std::uint16_t{CODE_COLD};
  if (name.ends_with("@plt")) flags |= CODE_STUB | CODE_ENTRY;
  if (name.starts_with("_dl_runtime_resolve")) flags |= std::uint16_t{CODE_RESOLVER};
  if (is_any_of(name, {"setjmp", "_setjmp", "__setjmp", "sigsetjmp", "__sigsetjmp", "getcontext"}))
    flags |= std::uint16_t{CODE_SETJMP};
  if (is_any_of(name, {"swapcontext", "setcontext", "jump_fcontext", "ontop_fcontext"}))
    flags |= std::uint16_t{CODE_SWITCH};
  if (is_any_of(name, {"setcontext"})) flags |= std::uint16_t{CODE_LEAVE};
  if (is_any_of(name, {"clone", "__clone", "clone3", "__clone3", "__clone_internal", "fork", "__libc_fork",
                       "_Fork", "vfork", "__vfork"}))
    flags |= std::uint16_t{CODE_CLONE};
  return flags;
}

}  // namespace

CodeVersion SymbolFacts::follow(trace::SpaceId space, std::uint64_t tsc) {
  view_ = &image_.view(space, tsc);
  known_ = &places_[view_->id()];
  return {view_->id(), view_->valid_to()};
}

// The number of the function with this entry.
std::uint32_t SymbolFacts::number_at(std::uint64_t entry) const {
  const image::Provenance where = symbol::file_at(image_, *view_, entry);
  Function function{entry, view_->space(), where.file, 0};
  if (where.file >= 0 && where.region >= 0) {
    const trace::CodeRegion& region = image_.bundle().code[static_cast<std::size_t>(where.region)];
    function.offset = entry - region.address + region.file_offset;
  } else if (const auto module = symbols_.module_at(view_->space(), entry)) {
    function.file = module->file;
    function.offset = module->rva;
  }
  return functions_.number(function);
}

CodePlace SymbolFacts::find(std::uint64_t ip) const {
  CodePlace place{ip, kUnknownFunction, 0};
  if (const auto symbol = symbols_.find(view_->space(), view_->valid_from(), ip)) {
    place.entry = symbol->address;
    place.flags = flags_of(symbol->raw_name);
    place.flags |= std::uint16_t{CODE_KNOWN};
    if (symbol->address == ip) place.flags |= std::uint16_t{CODE_ENTRY};
    place.function = number_at(symbol->address);
  }
  if (place.is(CODE_KNOWN) && !place.is(CODE_ENTRY)) return place;
  constexpr std::size_t kStubBytes = 16;
  std::array<std::uint8_t, kStubBytes> bytes{};
  const Bytes code = Bytes(bytes).first(view_->read(ip, bytes));
  if (is_stub(code)) place.flags |= CODE_STUB | CODE_ENTRY;
  if (is_first_stub(code)) place.flags |= CODE_STUB | CODE_ENTRY | CODE_LAZY;
  constexpr std::uint8_t kRet = 0xc3;
  if (const Bytes body = skip_endbr(code); !body.empty() && body[0] == kRet)
    place.flags |= std::uint16_t{CODE_RETURN};
  return place;
}

CodePlace SymbolFacts::at(std::uint64_t ip) {
  const auto [place, is_new] = known_->try_emplace(ip);
  if (is_new) place->second = find(ip);
  return place->second;
}

std::uint32_t SymbolFacts::function_at(std::uint64_t ip) {
  const CodePlace place = at(ip);
  return place.is(CODE_KNOWN) ? place.function : number_at(ip);
}

std::uint64_t SymbolFacts::end_of(std::uint64_t ip) {
  std::array<std::uint8_t, kLongestInsn> bytes{};
  const Bytes code = Bytes(bytes).first(view_->read(ip, bytes));
  Insn found;
  // Space 64 is right for the size of branches of 32-bit code, too, unless they have prefixes.
  if (insn::decode(insn::ExecMode::BITS64, code, found) != base::Status::OK) return 0;
  return ip + found.size;
}

std::optional<std::uint64_t> SymbolFacts::landing_pad_of(std::uint64_t ip) {
  static_cast<void>(ip);
  return std::nullopt;
}

}  // namespace ptkit::calls
