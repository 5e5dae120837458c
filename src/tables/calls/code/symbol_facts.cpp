#include "tables/calls/code/symbol_facts.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/addresses.h"
#include "base/ascii.h"
#include "base/check_sum.h"
#include "base/node_bytes.h"
#include "code/insn/insn.h"
#include "code/symbol/anon_memory.h"
#include "code/symbol/row_views.h"
#include "tables/calls/code/code_patterns.h"
#include "trace/module_names.h"

namespace ptkit::tables::calls {
namespace {

using base::Bytes;
using code::insn::Insn;

constexpr std::size_t kLongestInsn = 15;
constexpr std::size_t kSwitchBytes = 512;  // of a function that may switch stacks

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
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Functions that only branch to an address in a register, or on the stack: of GCC, clang, MSVC and the
// kernel.
[[nodiscard]] bool is_thunk(std::string_view name) noexcept {
  name.remove_prefix(std::min(name.find_first_not_of('_'), name.size()));
  return name.starts_with("x86_indirect_") || name.starts_with("llvm_retpoline_") ||
         name.starts_with("llvm_lvi_thunk_") || name.starts_with("guard_retpoline_") ||
         name.ends_with("return_thunk");
}

[[nodiscard]] std::uint32_t flags_of(std::string_view name) noexcept {
  if (name.ends_with("@plt")) return CODE_STUB | CODE_ENTRY;
  unsigned flags = 0;
  if (name.find(".cold") != std::string_view::npos) flags |= CODE_COLD;
  if (name.ends_with("return_thunk")) flags |= CODE_RETURN;
  if (is_thunk(name)) flags |= CODE_STUB | CODE_THUNK;
  if (name.starts_with("_dl_runtime_resolve")) flags |= CODE_RESOLVER;
  // Functions of the C library have several names, some with underscores, and versions.
  std::string_view bare = name.substr(0, name.find('@'));
  bare.remove_prefix(std::min(bare.find_first_not_of('_'), bare.size()));
  if (is_any_of(bare, {"setjmp", "sigsetjmp", "getcontext"})) flags |= CODE_SETJMP;
  // Go's scheduler: goroutines call it by mcall(), or where their stacks have to grow; it goes on by gogo().
  if (bare.ends_with(".abi0")) bare.remove_suffix(std::string_view(".abi0").size());
  if (is_any_of(bare, {"runtime.mcall", "runtime.morestack"})) flags |= CODE_MCALL;
  if (bare == "gogo") flags |= CODE_SWITCH | CODE_LEAVE;
  if (bare == "runtime.goexit0") flags |= CODE_LEAVE;
  if (is_any_of(bare, {"swapcontext", "setcontext", "jump_fcontext", "ontop_fcontext"})) flags |= CODE_SWITCH;
  if (bare == "setcontext") flags |= CODE_LEAVE;
  if (bare == "start") flags |= CODE_START;
  if (is_any_of(bare, {"clone", "clone3", "clone_internal", "fork", "libc_fork", "Fork", "vfork"}))
    flags |= CODE_CLONE;
  return flags;
}

[[nodiscard]] std::uint32_t kernel_flags_of(std::string_view name) noexcept {
  if (is_any_of(name, {"__switch_to_asm", "__switch_to"})) return CODE_TASK_SWITCH;
  if (name == "__schedule") return CODE_SCHEDULER;
  if (name.starts_with("ret_from_fork")) return CODE_CLONE;
  return name == "do_task_dead" ? std::uint32_t{CODE_TASK_END} : 0U;
}

}  // namespace

CodeVersion SymbolFacts::follow(trace::SpaceId space, std::uint64_t tsc) {
  const code::image::CodeView* const view = &image_.view(space, tsc);
  if (view != view_) {
    view_ = view;
    known_ = &locations_[view->id()];
    known_symbols_ = &symbols_by_ip_[view->id()];
    known_symbol_ = nullptr;
  }
  return {view->id(), view->valid_to()};
}

SymbolFacts::FileLocation SymbolFacts::file_location(std::uint64_t ip) {
  if (known_file_.view != view_ || ip < known_file_.first || ip > known_file_.last) {
    const code::image::Provenance where = code::symbol::file_at(image_, *view_, ip);
    if (where.file < 0 || where.region < 0) return {};
    const trace::CodeRegion& region = image_.bundle().code[static_cast<std::size_t>(where.region)];
    const FileLocation first{symbols_.unwind_of(where.file), where.file,
                             ip - region.address + region.file_offset};
    known_file_ = {view_, ip, where.last, first};
  }
  FileLocation location = known_file_.location;
  location.offset += ip - known_file_.first;
  return location;
}

const SymbolFacts::KnownSymbol* SymbolFacts::symbol_at(std::uint64_t ip) {
  const auto covers = [ip](const KnownSymbol& known) { return ip >= known.first && ip <= known.last; };
  if (known_symbol_ != nullptr && covers(*known_symbol_)) return known_symbol_;
  const auto above = known_symbols_->upper_bound(ip);
  if (above != known_symbols_->begin() && covers(std::prev(above)->second))
    return known_symbol_ = &std::prev(above)->second;
  std::uint64_t last = ip;
  const auto symbol = symbols_.find(view_->space(), view_->valid_from(), ip, last);
  if (!symbol) return nullptr;
  // Mostly all addresses of a function have one symbol.
  std::uint64_t first = symbol->address;
  if (std::uint64_t until = first; first != ip) {
    const auto begin = symbols_.find(view_->space(), view_->valid_from(), first, until);
    if (!begin || begin->address != first || until < ip) first = ip;
  }
  KnownSymbol& known = (*known_symbols_)[first];
  known = {first, last, *symbol, number_at(symbol->address), flags_of(symbol->raw_name)};
  return known_symbol_ = &known;
}

// The number of the function with this entry.
std::uint32_t SymbolFacts::number_at(std::uint64_t entry) {
  const FileLocation location = file_location(entry);
  Function function{entry, view_->space(), location.file, location.offset, view_->valid_from()};
  if (location.file >= 0) return functions_.number(function);
  if (const auto module = symbols_.module_at(view_->space(), view_->valid_from(), entry)) {
    function.file = module->file;
    function.offset = module->rva;
  } else if (const auto memory = symbols_.anon_memory().find(view_->space(), entry);
             memory && code::symbol::maps(*view_, entry)) {
    const code::symbol::AnonModule& found = symbols_.anon_memory().modules()[*memory];
    function.memory_base = found.base;
    function.memory_space = found.space;
  }
  return functions_.number(function);
}

// Flags that the unwind table gives to an address in the function that begins at `begin`.
std::uint32_t SymbolFacts::unwind_flags(const FileLocation& location, std::uint64_t begin) {
  if (location.unwind == nullptr) return 0;
  unsigned flags = 0;
  if (location.unwind->is_landing_pad(location.offset)) flags |= CODE_LANDING_PAD;
  if (location.unwind->is_stub(location.offset)) flags |= CODE_STUB | CODE_ENTRY;
  const auto function = location.unwind->function_at(begin);
  if (function && function->begin == begin && !location.unwind->is_entry(begin)) flags |= CODE_COLD;
  return flags;
}

CodeLocation SymbolFacts::find(std::uint64_t ip) {
  CodeLocation location{ip, kUnknownFunction, 0};
  bool is_named = false;
  const KnownSymbol* const found = symbol_at(ip);
  if (found != nullptr) {
    location.entry = found->symbol.address;
    location.flags = found->flags | CODE_KNOWN;
    if (ip >= base::kKernelHalf) location.flags |= kernel_flags_of(found->symbol.raw_name);
    if (found->symbol.address == ip) location.flags |= CODE_ENTRY;
    location.function = found->function;
    is_named = !found->symbol.raw_name.empty();
  }
  const FileLocation where = file_location(ip);
  location.flags |= unwind_flags(where, where.offset - (ip - location.entry));
  if (location.is(CODE_KNOWN) && !location.is(CODE_ENTRY)) return location;
  std::array<std::uint8_t, kSwitchBytes> bytes{};
  const Bytes code = Bytes(bytes).first(view_->read(ip, bytes));
  // A function may begin like a stub: where bounds are known, they decide.
  const bool in_function = where.unwind != nullptr && where.unwind->function_at(where.offset).has_value();
  const bool may_be_stub = location.is(CODE_STUB) || !in_function;
  if (may_be_stub && is_stub(code)) location.flags |= CODE_STUB | CODE_ENTRY;
  if (may_be_stub && is_first_stub(code)) location.flags |= CODE_STUB | CODE_ENTRY | CODE_LAZY;
  // A thunk without a name.
  if (!is_named && calls::is_retpoline_call(*view_, ip))
    location.flags |= CODE_STUB | CODE_ENTRY | CODE_THUNK;
  constexpr std::uint8_t kRet = 0xc3;
  const Bytes body = skip_endbr(code);
  if (body.empty() || body[0] != kRet) location.flags &= ~std::uint32_t{CODE_RETURN};
  if (location.is(CODE_RETURN)) location.flags &= ~std::uint32_t{CODE_STUB | CODE_THUNK};
  const bool may_switch = ip < base::kKernelHalf && !location.is(CODE_STUB) && !location.is(CODE_MCALL);
  const std::uint64_t size = found != nullptr ? std::min<std::uint64_t>(found->symbol.size, code.size()) : 0;
  const Bytes function = size != 0 ? code.first(size) : code;
  if (may_switch && switches_stacks(function, size != 0)) location.flags |= CODE_SWITCH;
  return location;
}

CodeLocation SymbolFacts::at(std::uint64_t ip) {
  const auto [found, is_new] = known_->find_or_add(ip);
  if (is_new) *found = find(ip);
  return *found;
}

std::uint32_t SymbolFacts::function_at(std::uint64_t ip) {
  const CodeLocation location = at(ip);
  return location.is(CODE_KNOWN) ? location.function : number_at(ip);
}

std::uint32_t SymbolFacts::function_of_thread(std::int64_t tid) {
  Function function;
  function.thread = tid;
  return functions_.number(function);
}

std::uint32_t SymbolFacts::import_at(std::uint64_t ip) {
  if (!symbols_.has_imports()) return kUnknownFunction;
  const auto [found, is_new] = imports_[view_->id()].try_emplace(ip, kUnknownFunction);
  if (!is_new) return found->second;
  const auto [name, module] = symbols_.import_at(view_->space(), view_->valid_from(), ip);
  if (name.empty()) return kUnknownFunction;
  Function function{.entry_ip = ip, .space = view_->space(), .code_tsc = view_->valid_from()};
  function.import = reinterpret_cast<std::uintptr_t>(name.data());  // texts of equal names are the same
  if (!module.empty()) {
    const ImportModule& found_module = module_of(module);
    function.import_module = found_module.hash;
    function.file = found_module.file;
  }
  found->second = functions_.number(function);
  return found->second;
}

// Windows ignores case. Of several files, the last one lies over the others.
const SymbolFacts::ImportModule& SymbolFacts::module_of(std::string_view name) {
  if (const auto known = import_modules_.find(name); known != import_modules_.end()) return known->second;
  ImportModule module;
  const std::string lower = base::ascii_lower(name);
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(lower.data());
  module.hash = std::max(base::check_sum({bytes, lower.size()}), kUnknownModule + 1);
  const auto& files = image_.bundle().files;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (trace::is_same_module(name, files[i].path)) module.file = static_cast<std::int32_t>(i);
  }
  return import_modules_.emplace(name, module).first->second;
}

std::uint64_t SymbolFacts::bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const auto& [view, locations] : locations_) sum += locations.bytes();
  for (const auto& [view, symbols] : symbols_by_ip_)
    sum += symbols.size() * base::node_bytes<std::pair<const std::uint64_t, KnownSymbol>>();
  for (const auto& [view, imports] : imports_)
    sum += imports.size() * base::node_bytes<std::pair<const std::uint64_t, std::uint32_t>>();
  return sum;
}

bool SymbolFacts::has_code(std::uint64_t ip) {
  std::uint8_t byte = 0;
  return view_->read(ip, {&byte, 1}) != 0;
}

// Of size 0: there is no instruction.
Insn SymbolFacts::insn_at(std::uint64_t ip) const {
  std::array<std::uint8_t, kLongestInsn> bytes{};
  const Bytes code = Bytes(bytes).first(view_->read(ip, bytes));
  Insn found;
  // Space 64 is right for the size of branches of 32-bit code, too, unless they have prefixes.
  if (code::insn::decode(code::insn::ExecMode::BITS64, code, found) != base::Status::OK) return {};
  return found;
}

std::uint64_t SymbolFacts::end_of(std::uint64_t ip) {
  const Insn found = insn_at(ip);
  return found.size == 0 ? 0 : ip + found.size;
}

bool SymbolFacts::is_retpoline_call(std::uint64_t ip) { return calls::is_retpoline_call(*view_, ip); }

bool SymbolFacts::begins_retpoline(std::uint64_t ip) {
  constexpr unsigned kMostLoads = 3;  // of the target
  const FirstBranch branch = first_branch(*view_, ip, kMostLoads);
  if (branch.jump_to != 0) return at(branch.jump_to).is(CODE_THUNK);
  return branch.ip != 0 && calls::is_retpoline_call(*view_, branch.ip);
}

bool SymbolFacts::follows_call(std::uint64_t ip) {
  constexpr std::uint64_t kShortest = 2;
  constexpr std::uint64_t kLongest = 8;
  bool is_known = false;
  for (std::uint64_t size = kShortest; size <= kLongest; ++size) {
    const Insn before = insn_at(ip - size);
    is_known = is_known || before.size != 0;
    const bool calls = before.cls == code::insn::InsnClass::CALL ||
                       before.cls == code::insn::InsnClass::CALL_INDIRECT ||
                       before.kind == code::insn::InsnKind::CALL_FAR;
    if (calls && before.size == size) return true;
  }
  return !is_known;
}

bool SymbolFacts::is_far_call(std::uint64_t ip) {
  constexpr std::uint8_t kDirect = 0x9a;  // of 32-bit code alone
  std::array<std::uint8_t, 1> first{};
  const bool is_direct = view_->read(ip, first) == 1 && first[0] == kDirect;
  return is_direct || insn_at(ip).kind == code::insn::InsnKind::CALL_FAR;
}

bool SymbolFacts::loads_stack_pointer(std::uint64_t entry, std::uint64_t ip) {
  constexpr std::uint64_t kMostBytes = 1024;
  const CodeLocation location = at(ip);
  std::uint64_t begin = location.is(CODE_KNOWN) ? location.entry : entry;
  if (begin > ip || ip - begin > kMostBytes) begin = entry;
  if (begin > ip || ip - begin > kMostBytes) return false;
  std::array<std::uint8_t, kMostBytes> bytes{};
  const std::size_t size = view_->read(begin, std::span(bytes).first(ip - begin));
  return size == ip - begin && calls::loads_stack_pointer(Bytes(bytes).first(size));
}

std::optional<std::uint64_t> SymbolFacts::landing_pad_of(std::uint64_t ip) {
  const FileLocation location = file_location(ip);
  if (location.unwind == nullptr) return std::nullopt;
  const auto pad = location.unwind->landing_pad_of(location.offset);
  return pad ? std::optional(ip + (*pad - location.offset)) : std::nullopt;
}

}  // namespace ptkit::tables::calls
