#include "capture/code_recorder.h"

#include <algorithm>
#include <cstring>

namespace ptkit::capture {

namespace {

constexpr std::size_t kMaxInsnBytes = 15;
constexpr std::uint64_t kMaxVdsoBytes = 1 << 20;

CodeInsn describe(const insn::Insn& insn, base::Bytes code) {
  CodeInsn out;
  out.insn = insn;
  // Only the operand-size and segment prefixes and REX matter here.
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

}  // namespace

const CodeInsn* CodeRecorder::fetch(std::uint64_t ip, insn::ExecMode mode, std::uint64_t tsc) {
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
  insn::Insn insn;
  const base::Bytes code = base::Bytes(page->bytes).subspan(offset);
  const base::Status status = insn::decode(mode, code.first(std::min(code.size(), kMaxInsnBytes)), insn);
  if (status == base::Status::NO_CODE) return decode_across(ip, mode, *page, tsc);
  if (status != base::Status::OK) return nullptr;
  page->index[offset] = static_cast<std::int16_t>(page->insns.size());
  page->insns.push_back(describe(insn, code));
  return &page->insns.back();
}

// An instruction that lies on two pages is decoded anew each time: either page may have changed.
const CodeInsn* CodeRecorder::decode_across(std::uint64_t ip, insn::ExecMode mode, Page& first,
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
  insn::Insn insn;
  if (insn::decode(mode, bytes, insn) != base::Status::OK) return nullptr;
  across_ = describe(insn, bytes);
  return &across_;
}

bool CodeRecorder::unchanged(std::uint64_t ip, std::size_t size, const Page& page) const {
  std::array<std::uint8_t, kMaxInsnBytes> now{};
  const auto part = std::span(now).first(size);
  return memory_.read(ip, part) == size &&
         std::memcmp(now.data(), page.bytes.data() + ip % kPageBytes, size) == 0;
}

CodeRecorder::Page* CodeRecorder::page_at(std::uint64_t address, std::uint64_t tsc) {
  if (address == last_address_ && last_page_->generation == generation_) return last_page_;
  if (mappings_generation_ != generation_) read_mappings(tsc);
  std::unique_ptr<Page>& slot = pages_[address];
  if (slot == nullptr) {
    auto fresh = std::make_unique<Page>();
    place(address, *fresh);
    // Nothing was known about the page before: it may have been like this from the start.
    if (!load(address, *fresh, trace::kTscMin)) return nullptr;
    slot = std::move(fresh);
  } else if (slot->generation != generation_ && !refresh(address, *slot, tsc)) {
    return nullptr;
  }
  slot->generation = generation_;
  last_address_ = address;
  last_page_ = slot.get();
  return last_page_;
}

// Mappings have changed since the page was looked at: is it still what it was?
bool CodeRecorder::refresh(std::uint64_t address, Page& page, std::uint64_t tsc) {
  const std::int32_t old_file = page.file;
  const std::uint64_t old_offset = page.file_offset;
  place(address, page);
  PageBytes now{};
  if (memory_.read(address, now) != now.size()) return false;
  if (now == page.bytes && page.file == old_file && page.file_offset == old_offset) return true;
  if (now != page.bytes) ++changes_;
  return load(address, page, tsc + 1);
}

bool CodeRecorder::load(std::uint64_t address, Page& page, std::uint64_t tsc_from) {
  if (memory_.read(address, page.bytes) != page.bytes.size()) return false;
  page.index.fill(-1);
  page.insns.clear();
  save(address, page, tsc_from);
  return true;
}

void CodeRecorder::save(std::uint64_t address, const Page& page, std::uint64_t tsc_from) {
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

// Where the page comes from, and whether it can be trusted to stay as it is.
void CodeRecorder::place(std::uint64_t address, Page& page) {
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

// The number of the mapped file; -1 for anonymous memory. What is new goes to the bundle with its names.
std::int32_t CodeRecorder::file_of(const Mapping& mapping) {
  if (mapping.path.empty()) return -1;
  const bool in_memory = mapping.path.front() == '[';  // "[vdso]": an ELF image that is in no file
  // A 32-bit vDSO is another file than the 64-bit one.
  const std::string key = in_memory && mapping.end <= 0x100000000 ? mapping.path + "32" : mapping.path;
  const FileTable::Entry entry = files_.find(key, mapping.path, [&] {
    if (!in_memory) return reader_.read(reader_.open(pid_, mapping), mapping.path);
    std::vector<std::uint8_t> bytes(std::min(mapping.end - mapping.begin, kMaxVdsoBytes));
    bytes.resize(memory_.read(mapping.begin, bytes));
    return trace::TraceBuffer::from_vector(std::move(bytes));
  });
  if (entry.fresh) writer_.file(static_cast<std::uint32_t>(entry.number), *entry.fresh);
  return entry.number;
}

void CodeRecorder::read_mappings(std::uint64_t tsc) {
  mappings_ = read_maps(pid_);
  mappings_generation_ = generation_;
  for (const Mapping& mapping : mappings_) {
    if (!mapping.executable) continue;
    if (std::any_of(told_.begin(), told_.end(), [&](const Mapping& one) { return same(one, mapping); }))
      continue;
    told_.push_back(mapping);
    trace::Sideband record;
    record.kind = trace::SidebandKind::MAP;
    record.tsc = tsc;
    record.pid = pid_;
    record.address = mapping.begin;
    record.size = mapping.end - mapping.begin;
    record.file = file_of(mapping);
    record.file_offset = mapping.offset;
    if (record.file < 0) record.text = mapping.path;
    writer_.sideband(record);
    if (record.file < 0) continue;
    trace::CodeRegion
        region;  // without bytes: what a decoder names if it wants code that was not executed here
    region.space = space_;
    region.address = record.address;
    region.size = record.size;
    region.file = record.file;
    region.file_offset = record.file_offset;
    writer_.code(region);
  }
}

}  // namespace ptkit::capture
