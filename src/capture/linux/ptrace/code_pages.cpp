#include "capture/linux/ptrace/code_pages.h"

#include <algorithm>
#include <cstring>

namespace ptkit::capture {

namespace {

constexpr std::size_t kMaxInsnBytes = 15;
constexpr std::uint64_t kMaxVdsoBytes = 1 << 20;

CodeInsn describe(const code::insn::Insn& insn, base::Bytes code) {
  CodeInsn out;
  out.insn = insn;
  // Only the operand-size prefix and REX are skipped: other prefixes have no use with these opcodes.
  std::size_t at = 0;
  while (at + 1 < insn.size && (code[at] == 0x66 || (code[at] & 0xf0U) == 0x40)) ++at;
  out.pushes_flags = code[at] == 0x9c;
  const bool mov_ss = code[at] == 0x8e && at + 1 < insn.size && ((code[at + 1] >> 3U) & 7U) == 2;
  out.loads_ss = mov_ss || (code[at] == 0x17 && insn.size == at + 1);
  return out;
}

bool same(const Mapping& a, const Mapping& b) {
  return a.begin == b.begin && a.end == b.end && a.offset == b.offset && a.path == b.path;
}

// The begin of a file with code above it, from which RVAs count.
bool begins_code(const Mapping& begin, const std::vector<Mapping>& mappings) {
  return begin.offset == 0 && begin.path.starts_with('/') &&
         std::any_of(mappings.begin(), mappings.end(), [&](const Mapping& one) {
           return one.executable && one.begin > begin.begin && one.path == begin.path;
         });
}

}  // namespace

const CodeInsn* CodePages::fetch(std::uint64_t ip, code::insn::ExecMode mode, std::uint64_t tsc) {
  Page* page = page_at(ip & ~(kPageBytes - 1), tsc);
  if (page == nullptr) return nullptr;
  const std::size_t offset = ip % kPageBytes;
  if (page->mode != mode) {
    page->mode = mode;
    page->index.fill(-1);
    page->insns.clear();
  }
  if (page->index[offset] >= 0) {
    const CodeInsn& known = page->insns[static_cast<std::size_t>(page->index[offset])];
    if (page->fixed || unchanged(ip, known.insn.size, *page)) {
      return &known;
    }
    if (!load(ip - offset, *page, tsc + 1)) return nullptr;
    ++changes_;
  } else if (!page->fixed && !unchanged(ip, std::min(kMaxInsnBytes, kPageBytes - offset), *page)) {
    if (!load(ip - offset, *page, tsc + 1)) return nullptr;
    ++changes_;
  }
  page->mode = mode;
  code::insn::Insn insn;
  const base::Bytes code = base::Bytes(page->bytes).subspan(offset);
  const base::Status status =
      code::insn::decode(mode, code.first(std::min(code.size(), kMaxInsnBytes)), insn);
  if (status == base::Status::NO_CODE) return decode_across(ip, mode, *page, tsc);
  if (status != base::Status::OK) return nullptr;
  page->index[offset] = static_cast<std::int16_t>(page->insns.size());
  page->insns.push_back(describe(insn, code));
  return &page->insns.back();
}

// Decodes an instruction on two pages each time: either page may have changed.
const CodeInsn* CodePages::decode_across(std::uint64_t ip, code::insn::ExecMode mode, Page& first,
                                         std::uint64_t tsc) {
  const std::uint64_t second_address = (ip & ~(kPageBytes - 1)) + kPageBytes;
  const std::size_t offset = ip % kPageBytes;
  std::array<std::uint8_t, kMaxInsnBytes> bytes{};
  const std::size_t head = std::min(kPageBytes - offset, kMaxInsnBytes);
  std::memcpy(bytes.data(), first.bytes.data() + offset, head);
  Page* second = page_at(second_address, tsc);
  if (second == nullptr) return nullptr;
  if (!second->fixed && !unchanged(second_address, kMaxInsnBytes - head, *second)) {
    if (!load(second_address, *second, tsc + 1)) return nullptr;
    ++changes_;
  }
  std::memcpy(bytes.data() + head, second->bytes.data(), kMaxInsnBytes - head);
  code::insn::Insn insn;
  if (code::insn::decode(mode, bytes, insn) != base::Status::OK) return nullptr;
  across_ = describe(insn, bytes);
  return &across_;
}

bool CodePages::unchanged(std::uint64_t ip, std::size_t size, const Page& page) const {
  std::array<std::uint8_t, kMaxInsnBytes> now{};
  const auto part = std::span(now).first(size);
  return memory_.read(ip, part) == size &&
         std::memcmp(now.data(), page.bytes.data() + ip % kPageBytes, size) == 0;
}

CodePages::Page* CodePages::page_at(std::uint64_t address, std::uint64_t tsc) {
  if (address == last_address_ && last_page_->generation == generation_) return last_page_;
  if (mappings_generation_ != generation_) read_mappings(tsc);
  std::unique_ptr<Page>& slot = pages_[address];
  if (slot == nullptr) {
    auto page = std::make_unique<Page>();
    set_source(address, *page);
    // The page's earlier contents are unknown: assume these bytes from the start.
    if (!load(address, *page, trace::kTscMin)) return nullptr;
    slot = std::move(page);
  } else if (slot->generation != generation_ && !refresh(address, *slot, tsc)) {
    return nullptr;
  }
  slot->generation = generation_;
  last_address_ = address;
  last_page_ = slot.get();
  return last_page_;
}

// Checks a page after mappings have changed. Loads it again if its bytes or its file differ.
bool CodePages::refresh(std::uint64_t address, Page& page, std::uint64_t tsc) {
  const std::int32_t old_file = page.file;
  const std::uint64_t old_offset = page.file_offset;
  set_source(address, page);
  PageBytes now{};
  if (memory_.read(address, now) != now.size()) return false;
  if (now == page.bytes && page.file == old_file && page.file_offset == old_offset) return true;
  if (now != page.bytes) ++changes_;
  return load(address, page, tsc + 1);
}

bool CodePages::load(std::uint64_t address, Page& page, std::uint64_t tsc_from) {
  if (memory_.read(address, page.bytes) != page.bytes.size()) return false;
  page.index.fill(-1);
  page.insns.clear();
  save(address, page, tsc_from);
  return true;
}

void CodePages::save(std::uint64_t address, const Page& page, std::uint64_t tsc_from) {
  trace::CodeRegion region;
  region.space = space_;
  region.address = address;
  region.size = kPageBytes;
  region.bytes = trace::TraceBuffer::from_vector({page.bytes.begin(), page.bytes.end()});
  region.tsc_from = tsc_from;
  region.file = page.file;
  region.file_offset = page.file_offset;
  writer_.code(region);
}

// Sets the page's file, and whether only a system call can change its bytes.
void CodePages::set_source(std::uint64_t address, Page& page) {
  page.fixed = false;
  page.file = -1;
  page.file_offset = 0;
  const auto at =
      std::upper_bound(mappings_.begin(), mappings_.end(), address,
                       [](std::uint64_t value, const Mapping& mapping) { return value < mapping.end; });
  if (at == mappings_.end() || address < at->begin) return;
  page.fixed = !at->writable && !at->shared;
  page.file = file_of(*at);
  if (page.file >= 0) page.file_offset = at->offset + (address - at->begin);
}

// The number of the mapped file; -1 for anonymous memory. Writes a new file to the bundle with its symbols.
std::int32_t CodePages::file_of(const Mapping& mapping) {
  if (mapping.path.empty()) return -1;
  const bool in_memory = mapping.path.front() == '[';  // "[vdso]": an ELF image without a file
  // A 32-bit vDSO is another file than the 64-bit one.
  const std::string key = in_memory && mapping.end <= 0x100000000 ? mapping.path + "32" : mapping.path;
  const FileTable::Entry entry = files_.find(key, mapping.path, [&] {
    if (!in_memory)
      return reader_.parse(reader_.open(pid_, mapping), mapping.path, {ParseRequest::Kind::SYMBOLS});
    std::vector<std::uint8_t> bytes(std::min(mapping.end - mapping.begin, kMaxVdsoBytes));
    bytes.resize(memory_.read(mapping.begin, bytes));
    return reader_.parse_memory(bytes, mapping.path);
  });
  if (entry.fresh) writer_.file(static_cast<std::uint32_t>(entry.number), *entry.fresh);
  return entry.number;
}

void CodePages::read_mappings(std::uint64_t tsc) {
  mappings_ = read_maps(pid_);
  mappings_generation_ = generation_;
  for (const Mapping& mapping : mappings_) {
    if (!mapping.executable && !begins_code(mapping, mappings_)) continue;
    if (std::any_of(written_mappings_.begin(), written_mappings_.end(),
                    [&](const Mapping& one) { return same(one, mapping); }))
      continue;
    written_mappings_.push_back(mapping);
    const std::int32_t file = file_of(mapping);
    if (mapping.executable) write_record(mapping, file, tsc);
    if (file < 0) continue;
    // A region without bytes: decoders name the file if they need code that was not executed.
    trace::CodeRegion region;
    region.space = space_;
    region.address = mapping.begin;
    region.size = mapping.end - mapping.begin;
    region.file = file;
    region.file_offset = mapping.offset;
    writer_.code(region);
  }
}

void CodePages::write_record(const Mapping& mapping, std::int32_t file, std::uint64_t tsc) {
  trace::Sideband record;
  record.kind = trace::SidebandKind::MAP;
  record.tsc = tsc;
  record.pid = pid_;
  record.address = mapping.begin;
  record.size = mapping.end - mapping.begin;
  record.file = file;
  record.file_offset = mapping.offset;
  if (file < 0) record.text = mapping.path;
  writer_.sideband(record);
}

}  // namespace ptkit::capture
