// Streams of DRAKVUF's ipt plugin: one raw file for each virtual CPU of the guest. DRAKVUF inserts PTW
// packets while the guest is paused: they name the running thread and the event of DRAKVUF's logs.
#include <algorithm>
#include <map>
#include <set>

#include "base/addresses.h"
#include "formats/common/files.h"
#include "formats/common/numbered_files.h"
#include "formats/common/readers.h"
#include "formats/foreign/drakvuf_log.h"
#include "formats/foreign/drakvuf_scan.h"
#include "ptkit/rtit_regs.h"
#include "trace/rtit_ctl.h"
#include "trace/warning_codes.h"

namespace ptkit::formats {

using trace::WarningCode;

namespace {

using drakvuf::Annotation;
using drakvuf::Found;
using drakvuf::Paging;

constexpr std::string_view kStreamName = "ipt_stream_vcpu";
using base::kPageBytes;
constexpr std::uint64_t kPageMask = kPageBytes - 1;
constexpr std::uint64_t kLow32 = 0xffffffff;

std::uint64_t half_of(std::uint64_t cr3) noexcept { return cr3 & kLow32 & ~kPageMask; }

class Loader {
 public:
  explicit Loader(const std::string& path) : path_(path) {
    std::uint64_t ctl = 0;
    for (const auto field : {PT_CTL_TRACE_EN, PT_CTL_OS, PT_CTL_USER, PT_CTL_DIS_RETC, PT_CTL_BRANCH_EN})
      ctl |= std::uint64_t{1} << field;
    trace::set_rtit_ctl(bundle_.configuration, ctl);
  }

  base::Result<trace::TraceBundle> load(const std::map<std::int64_t, std::string>& files,
                                        const std::string& folder) {
    read_logs(folder);
    auto streams = cpu_streams(path_, files);
    if (!streams.ok()) return streams.failure();
    for (trace::Stream& stream : streams.value()) add_stream(std::move(stream));
    add_code(folder);
    if (no_data_ != 0) add(warn(WarningCode::DRAKVUF_EVENTS_UNTRACED, no_data_));
    return std::move(bundle_);
  }

 private:
  void add(const trace::Warning& warning) { bundle_.warnings.push_back(warning.at(path_)); }

  void read_logs(const std::string& folder) {
    for (const char* name : {"codemon.log", "ipt.log", "drakmon.log"}) {
      for (const std::string& place : {folder, join(folder, "..")}) {
        const std::string file = join(place, name);
        if (!is_file(file)) continue;
        auto text = trace::TraceBuffer::map_file(file);
        if (!text.ok()) continue;
        drakvuf::read_log(text.value().bytes(), log_);
        break;
      }
    }
    if (log_.bad_lines != 0) add(warn(WarningCode::DRAKVUF_LINES_SKIPPED, log_.bad_lines));
    if (!log_.taken_over.empty()) add(warn(WarningCode::DRAKVUF_CR3_REUSED, log_.taken_over.size()));
    for (const auto& [cr3, pid] : log_.processes) {
      bundle_.spaces[space_of(cr3)].pid = pid;
      by_half_.try_emplace(half_of(cr3), cr3);
    }
    for (const auto& [ids, name] : log_.threads) bundle_.threads.push_back({ids.first, ids.second, name});
  }

  trace::SpaceId space_of(std::uint64_t cr3) {
    const auto [found, is_new] = spaces_.try_emplace(cr3 & ~kPageMask, 0);
    if (is_new) {
      found->second = static_cast<trace::SpaceId>(bundle_.spaces.size());
      bundle_.spaces.push_back({trace::kNoId, cr3 & ~kPageMask, true});
    }
    return found->second;
  }

  // An annotation has half of CR3. The other half comes from the next PIP, from page tables that the logs
  // name, or from any other PIP.
  trace::SpaceId space_of_half(std::uint32_t low, const Paging* next_pip) {
    const std::uint64_t half = low & ~kPageMask;
    if (next_pip != nullptr && half_of(next_pip->cr3) == half) return space_of(next_pip->cr3);
    const auto known = by_half_.find(half);
    return space_of(known != by_half_.end() ? known->second : half);
  }

  void add_stream(trace::Stream stream) {
    const Found found = drakvuf::scan(stream.data.bytes());
    no_data_ += found.no_data;
    for (const Paging& pip : found.pips) by_half_.try_emplace(half_of(pip.cr3), pip.cr3);
    stream.switches_by_offset = true;
    trace::Switch now;
    auto pip = found.pips.begin();
    const auto& all = found.annotations;
    for (std::size_t i = 0; i < all.size(); ++i) {
      now.offset = all[i].offset;
      if (all[i].mark == trace::DrakvufMark::TID) {
        now.tid = all[i].data;
      } else if (all[i].mark == trace::DrakvufMark::CR3) {
        const auto is_next_cr3 = [](const Annotation& one) { return one.mark == trace::DrakvufMark::CR3; };
        const auto next =
            std::find_if(all.begin() + static_cast<std::ptrdiff_t>(i) + 1, all.end(), is_next_cr3);
        while (pip != found.pips.end() && pip->offset < now.offset) ++pip;
        const bool near = pip != found.pips.end() && (next == all.end() || pip->offset < next->offset);
        now.space = space_of_half(all[i].data, near ? &*pip : nullptr);
        now.pid = bundle_.spaces[now.space].pid;
        const bool with_tid = i + 1 < all.size() && all[i + 1].mark == trace::DrakvufMark::TID &&
                              all[i + 1].offset == now.offset + drakvuf::kPtwSize;
        now.tid = with_tid ? static_cast<std::int64_t>(all[++i].data) : trace::kNoId;
      } else {
        continue;
      }
      stream.switches.push_back(now);
    }
    bundle_.streams.push_back(std::move(stream));
  }

  void add_code(const std::string& folder) {
    std::map<std::string, trace::TraceBuffer> contents;
    std::map<std::pair<std::uint64_t, std::uint64_t>, trace::TraceBuffer>
        saved;                                              // by physical and virtual address
    std::set<std::pair<std::uint64_t, std::uint64_t>> own;  // CR3 and address
    for (const drakvuf::SavedPage& page : log_.pages) {
      if (!contents.contains(page.file)) contents[page.file] = read_page(folder, page.file);
      const trace::TraceBuffer& bytes = contents[page.file];
      if (bytes.size() == 0) continue;
      saved[{page.physical, page.address}] = bytes;
      own.insert({page.cr3, page.address});
      put(page.cr3, page.address, bytes);
    }
    for (const drakvuf::PageFault& fault : log_.faults) {
      const auto found = saved.find({fault.physical, fault.address});
      if (found != saved.end() && own.insert({fault.cr3, fault.address}).second)
        put(fault.cr3, fault.address, found->second);
    }
    if (missing_pages_ != 0) add(warn(WarningCode::DRAKVUF_PAGES_MISSING, missing_pages_));
  }

  trace::TraceBuffer read_page(const std::string& folder, const std::string& name) {
    for (const char* place : {"dumps", "frames", "../dumps"}) {
      const std::string file = join(join(folder, place), name);
      if (!is_file(file)) continue;
      const std::string bytes = first_bytes(file, kPageBytes + 1);
      if (bytes.size() == kPageBytes)
        return trace::TraceBuffer::from_vector(std::vector<std::uint8_t>(bytes.begin(), bytes.end()));
    }
    ++missing_pages_;
    return {};
  }

  // All processes share the kernel's half of the address space.
  void put(std::uint64_t cr3, std::uint64_t address, const trace::TraceBuffer& bytes) {
    trace::CodeRegion region;
    region.space = address >> 63U != 0 ? trace::kAnySpace : space_of(cr3);
    region.address = address;
    region.bytes = bytes;
    region.size = bytes.size();
    bundle_.code.push_back(std::move(region));
  }

  std::string path_;
  trace::TraceBundle bundle_;
  drakvuf::Log log_;
  std::map<std::uint64_t, trace::SpaceId> spaces_;  // by CR3
  std::map<std::uint64_t, std::uint64_t> by_half_;  // CR3 by its lower half
  std::uint64_t no_data_ = 0;
  std::uint64_t missing_pages_ = 0;
};

std::map<std::int64_t, std::string> streams_in(const std::string& folder) {
  return numbered_files(folder, kStreamName);
}

// Returns the streams' folder: the given path, or the subfolder of an analysis' folder.
std::string streams_folder(const std::string& path) {
  const std::string inside = join(path, "ipt");
  return streams_in(path).empty() && is_folder(inside) ? inside : path;
}

bool sniff(const std::string& path) {
  if (is_folder(path)) return !streams_in(streams_folder(path)).empty();
  if (number_in_name(path, kStreamName)) return is_file(path);
  const std::string head = first_bytes(path, kPsbSearchBytes);
  const base::Bytes bytes(reinterpret_cast<const std::uint8_t*>(head.data()), head.size());
  return has_early_psb(bytes) && drakvuf::has_annotation(bytes);
}

base::Result<trace::TraceBundle> read(const std::string& path, const OpenOptions&) {
  if (!is_folder(path)) {
    const std::int64_t cpu = number_in_name(path, kStreamName).value_or(trace::kNoId);
    return Loader(path).load({{cpu, path}}, parent_folder(path));
  }
  const std::string folder = streams_folder(path);
  const auto files = streams_in(folder);
  if (files.empty())
    return bad_file(path, "expected files ipt_stream_vcpu0, ipt_stream_vcpu1, ..., found none");
  return Loader(path).load(files, folder);
}

}  // namespace

const Format kDrakvufFormat{
    .name = "drakvuf",
    .description = "streams of DRAKVUF's ipt plugin (ipt_stream_vcpuN)",
    .sniff = &sniff,
    .read = &read,
    .unverified = true,
};

}  // namespace ptkit::formats
