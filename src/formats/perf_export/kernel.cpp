#include "formats/perf_export/kernel.h"

#include <elf.h>

#include <algorithm>
#include <map>

#include "base/interval_map.h"
#include "formats/perf_export/code.h"
#include "formats/perf_export/output.h"

namespace ptkit::formats::perf {

namespace {

constexpr std::uint64_t kPage = 4096;

// Parts of the kernel's memory by address, disjoint.
using Parts = std::map<std::uint64_t, base::Bytes>;

bool is_known_kernel(const trace::CodeRegion& region) {
  return is_kernel(region) && region.bytes.size() != 0;
}

// Later regions replace earlier ones: perf has one kernel image for the whole recording, so that changed code
// has its last bytes.
Parts kernel_parts(const trace::TraceBundle& bundle) {
  base::IntervalMap<const trace::CodeRegion*> known;
  for (const trace::CodeRegion& region : bundle.code) {
    if (!is_known_kernel(region)) continue;
    const std::uint64_t most = ~region.address;  // bytes after the first one
    known.assign(region.address, region.address + std::min<std::uint64_t>(region.bytes.size() - 1, most),
                 &region);
  }
  Parts parts;
  for (const auto& [first, entry] : known) {
    const base::Bytes bytes = entry.value->bytes.bytes();
    parts.emplace(first, bytes.subspan(first - entry.value->address, entry.last - first + 1));
  }
  return parts;
}

std::optional<base::Failure> write_kcore(const Parts& parts, const std::string& path) {
  auto created = Output::create(path);
  if (!created.ok()) return created.failure();
  Output& out = created.value();
  std::vector<Elf64_Phdr> segments;
  const std::uint64_t head = sizeof(Elf64_Ehdr) + parts.size() * sizeof(Elf64_Phdr);
  out.skip_to((head + kPage - 1) / kPage * kPage);
  for (const auto& [address, bytes] : parts) {
    // Adjacent parts share a segment: an instruction may cross their border.
    const bool goes_on = !segments.empty() && segments.back().p_vaddr + segments.back().p_memsz == address;
    if (!goes_on) {
      Elf64_Phdr segment{};
      segment.p_type = PT_LOAD;
      segment.p_flags = PF_R | PF_W | PF_X;
      segment.p_offset = out.size();
      segment.p_vaddr = address;
      segments.push_back(segment);
    }
    segments.back().p_memsz += bytes.size();
    segments.back().p_filesz += bytes.size();
    out.put(bytes);
  }
  if (segments.size() >= PN_XNUM) {
    return base::Failure{base::Status::UNSUPPORTED, 0,
                         "the kernel's code lies in " + std::to_string(segments.size()) +
                             " separate ranges, more than the ELF segments that a kcore can have"};
  }
  Elf64_Ehdr header{};
  const unsigned char ident[] = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT};
  std::copy(std::begin(ident), std::end(ident), header.e_ident);
  header.e_type = ET_CORE;
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_phoff = sizeof header;
  header.e_ehsize = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = static_cast<std::uint16_t>(segments.size());
  out.put_at(0, {reinterpret_cast<const std::uint8_t*>(&header), sizeof header});
  out.put_at(sizeof header,
             {reinterpret_cast<const std::uint8_t*>(segments.data()), segments.size() * sizeof(Elf64_Phdr)});
  return out.keep();
}

struct Name {
  std::uint64_t address = 0;
  std::string text;  // name; of a module: name, tab, module in brackets
};

std::vector<Name> kernel_names(const trace::TraceBundle& bundle) {
  std::map<std::int32_t, std::vector<const trace::CodeRegion*>> by_file;
  for (const trace::CodeRegion& region : bundle.code) {
    if (is_known_kernel(region) && region.file >= 0) by_file[region.file].push_back(&region);
  }
  std::vector<Name> names;
  for (const auto& [number, regions] : by_file) {
    const trace::ImageFile& file = bundle.files[static_cast<std::size_t>(number)];
    const bool is_module = file.path.starts_with('[') && file.path != "[kernel]";
    base::IntervalMap<const trace::CodeRegion*> at;  // by offset in the file: the first region
    for (auto region = regions.rbegin(); region != regions.rend(); ++region)
      at.assign_size((*region)->file_offset, (*region)->bytes.size(), *region);
    for (const trace::SymbolEntry& symbol : file.symbols) {
      const auto found = at.find(symbol.file_offset);
      if (found == at.end() || symbol.name.empty()) continue;
      const trace::CodeRegion& region = *found->second.value;
      names.push_back({region.address + (symbol.file_offset - region.file_offset),
                       symbol.name + (is_module ? "\t" + file.path : "")});
    }
  }
  std::ranges::stable_sort(names, {}, &Name::address);
  return names;
}

std::optional<base::Failure> write_text(const std::string& path, const std::string& text) {
  auto out = Output::create(path);
  if (!out.ok()) return out.failure();
  out.value().put({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  return out.value().keep();
}

// 16 digits, as in /proc/kallsyms.
std::string padded_hex(std::uint64_t number) {
  std::string text(16, '0');
  for (std::size_t i = 16; i-- > 0; number >>= 4U) text[i] = "0123456789abcdef"[number & 15U];
  return text;
}

}  // namespace

bool has_kernel(const trace::TraceBundle& bundle) {
  return std::ranges::any_of(bundle.code, is_known_kernel);
}

std::optional<base::Failure> write_kernel(const trace::TraceBundle& bundle, const std::string& folder,
                                          Records& records) {
  const std::string at = folder + "/kcore_dir";
  if (auto failure = base::create_subfolder(at)) return failure;
  const Parts parts = kernel_parts(bundle);
  if (auto failure = write_kcore(parts, at + "/kcore")) return failure;
  std::vector<Name> names = kernel_names(bundle);
  // perf takes a symbol's name and address from the kernel's MMAP record, and looks for that name at that
  // address.
  const auto text = std::ranges::find_if(
      names, [](const Name& name) { return name.text == "_text" || name.text == "_stext"; });
  const Name first = text != names.end() ? *text : Name{parts.begin()->first, "_text"};
  if (text == names.end()) names.insert(names.begin(), first);
  std::string lines;
  for (const Name& name : names) lines += padded_hex(name.address) + " T " + name.text + "\n";
  if (auto failure = write_text(at + "/kallsyms", lines)) return failure;
  if (auto failure = write_text(at + "/modules", "")) return failure;
  // The mapping extends over all parts that follow without a gap.
  auto part = std::prev(parts.upper_bound(first.address));
  std::uint64_t end = part->first + part->second.size();
  while (++part != parts.end() && part->first == end) end += part->second.size();
  constexpr std::int64_t kKernel = -1;
  records.map({kKernel, 0, trace::kNoId, trace::kTscMin},
              {first.address, end - first.address, first.address, "[kernel.kallsyms]" + first.text, {}},
              true);
  return std::nullopt;
}

}  // namespace ptkit::formats::perf
