// Streams of DRAKVUF's ipt plugin: one file for each virtual processor of the guest, raw but for PTW packets
// that DRAKVUF put in while the guest stood still: who runs from there on, and which event of its logs it
// was.
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "formats/drakvuf_log.h"
#include "formats/files.h"
#include "formats/names.h"
#include "formats/readers.h"
#include "packet/scan.h"
#include "ptkit/rtit_regs.h"

namespace ptkit::formats {

namespace {

constexpr std::string_view kStreamName = "ipt_stream_vcpu";
constexpr std::array<std::uint8_t, 2> kPtwBytes{0x02, 0x32};  // 8 bytes of payload, no FUP
constexpr std::uint64_t kPtwSize = 10;
constexpr std::size_t kPageBytes = 4096;
constexpr std::uint64_t kPageMask = kPageBytes - 1;
constexpr std::uint64_t kLow32 = 0xffffffff;

// The upper halves of payloads.
constexpr std::uint32_t kCr3 = 0xC3000000;
constexpr std::uint32_t kTid = 0x1D000000;
constexpr std::uint32_t kEvent = 0xCC000000;
constexpr std::uint32_t kNoData = 0xBAD10000;

bool is_command(std::uint64_t payload) noexcept {
  const auto command = static_cast<std::uint32_t>(payload >> 32U);
  return command == kCr3 || command == kTid || command == kEvent || command == kNoData;
}

struct Annotation {
  std::uint64_t offset = 0;
  std::uint32_t command = 0;
  std::uint32_t data = 0;
};

struct Paging {
  std::uint64_t offset = 0;
  std::uint64_t cr3 = 0;
};

struct Found {
  std::vector<Annotation> annotations;
  std::vector<Paging> pips;
  std::uint64_t no_data = 0;
};

// Finds annotations and PIPs, in packets as long as these can be told apart, else by the bytes that no
// processor would write there.
class Scan {
 public:
  explicit Scan(base::Bytes stream) : stream_(stream) {}

  Found run() {
    packet::PacketDecoder decoder(stream_);
    bool more = sync(decoder, 0);
    while (more) {
      packet::DecoderState state = decoder.state();
      const auto filled = packet::fill_packets(stream_, state, {}, columns(), kRows);
      decoder.set_state(state);
      for (std::size_t row = 0; row < filled.rows; ++row) take(row);
      if (filled.status == base::Status::END_OF_STREAM) break;
      if (filled.status != base::Status::OK) more = sync(decoder, state.position + 1);
    }
    return std::move(found_);
  }

  // Is there one among these bytes?
  static bool has_annotation(base::Bytes bytes) {
    Scan scan(bytes);
    scan.search(0, bytes.size());
    return !scan.found_.annotations.empty() || scan.found_.no_data != 0;
  }

 private:
  static constexpr std::size_t kRows = 4096;

  packet::PacketColumns columns() noexcept {
    packet::PacketColumns out;
    out.offset = offsets_.data();
    out.kind = kinds_.data();
    out.flags = flags_.data();
    out.payload = payloads_.data();
    return out;
  }

  void take(std::size_t row) {
    const auto kind = static_cast<packet::PacketKind>(kinds_[row]);
    if (kind == packet::PacketKind::PIP) found_.pips.push_back({offsets_[row], payloads_[row]});
    if (kind == packet::PacketKind::PTW && (flags_[row] & packet::Packet::IP_BIT) == 0)
      add(offsets_[row], payloads_[row]);
  }

  void add(std::uint64_t offset, std::uint64_t payload) {
    if (!is_command(payload)) return;
    const auto command = static_cast<std::uint32_t>(payload >> 32U);
    if (command == kNoData) ++found_.no_data;
    found_.annotations.push_back({offset, command, static_cast<std::uint32_t>(payload)});
  }

  // To the next PSB from `from` on. False: there is none.
  bool sync(packet::PacketDecoder& decoder, std::uint64_t from) {
    const bool found = decoder.sync_forward(from) == base::Status::OK;
    search(from, decoder.position());
    return found;
  }

  void search(std::uint64_t from, std::uint64_t to) {
    auto at = stream_.begin() + static_cast<std::ptrdiff_t>(from);
    const auto end = stream_.begin() + static_cast<std::ptrdiff_t>(to);
    while ((at = std::search(at, end, kPtwBytes.begin(), kPtwBytes.end())) != end) {
      const auto offset = static_cast<std::uint64_t>(at - stream_.begin());
      if (stream_.size() - offset < kPtwSize) return;
      const auto payload = base::load_le<8>(stream_.data() + offset + kPtwBytes.size());
      if (is_command(payload)) add(offset, payload);
      at += is_command(payload) ? static_cast<std::ptrdiff_t>(kPtwSize) : 1;
      if (at > end) return;
    }
  }

  base::Bytes stream_;
  Found found_;
  std::array<std::uint64_t, kRows + packet::kPacketRowSlack> offsets_{};
  std::array<std::uint64_t, kRows + packet::kPacketRowSlack> payloads_{};
  std::array<std::uint8_t, kRows + packet::kPacketRowSlack> kinds_{};
  std::array<std::uint8_t, kRows + packet::kPacketRowSlack> flags_{};
};

class Loader {
 public:
  explicit Loader(const std::string& path) : path_(path) {
    bundle_.configuration.rtit_ctl_known = true;
    for (const auto field : {PT_CTL_TRACE_EN, PT_CTL_OS, PT_CTL_USER, PT_CTL_DIS_RETC, PT_CTL_BRANCH_EN})
      bundle_.configuration.rtit_ctl |= std::uint64_t{1} << field;
  }

  base::Result<trace::TraceBundle> load(const std::map<std::int64_t, std::string>& files,
                                        const std::string& folder) {
    read_logs(folder);
    for (const auto& [cpu, file] : files) {
      auto data = trace::TraceBuffer::map_file(file);
      if (!data.ok()) return data.failure();
      if (!data.value().bytes().empty()) add_stream(cpu, file, std::move(data.value()));
    }
    if (bundle_.streams.empty()) return bad_file(path_, "all of its streams are empty");
    add_code(folder);
    if (no_data_ != 0) {
      bundle_.warnings.push_back(path_ + ": " + std::to_string(no_data_) +
                                 " events came without any trace since the one before; DRAKVUF put in no "
                                 "annotation of theirs.");
    }
    return std::move(bundle_);
  }

 private:
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
    if (log_.bad_lines != 0) {
      bundle_.warnings.push_back(path_ + ": " + std::to_string(log_.bad_lines) +
                                 " lines of its logs that tell of page tables could not be read; pages of "
                                 "code or names of processes may be missing.");
    }
    for (const auto& [cr3, pid] : log_.processes) bundle_.spaces[space_of(cr3)].pid = pid;
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

  // Only half of it was annotated: the other half is the next PIP's, or that of tables that are known.
  trace::SpaceId space_of_half(std::uint32_t low, const Paging* next_pip) {
    const auto matches = [low](std::uint64_t cr3) { return ((cr3 ^ low) & kLow32 & ~kPageMask) == 0; };
    if (next_pip != nullptr && matches(next_pip->cr3)) return space_of(next_pip->cr3);
    for (const auto& [cr3, space] : spaces_) {
      if (matches(cr3)) return space;
    }
    return space_of(low);
  }

  void add_stream(std::int64_t cpu, const std::string& file, trace::TraceBuffer data) {
    const Found found = Scan(data.bytes()).run();
    no_data_ += found.no_data;
    trace::Stream stream;
    stream.name = file;
    stream.cpu = cpu;
    stream.data = std::move(data);
    stream.switches_by_offset = true;
    trace::Switch now;
    auto pip = found.pips.begin();
    const auto& all = found.annotations;
    for (std::size_t i = 0; i < all.size(); ++i) {
      now.offset = all[i].offset;
      if (all[i].command == kTid) {
        now.tid = all[i].data;
      } else if (all[i].command == kCr3) {
        const auto is_next_cr3 = [](const Annotation& one) { return one.command == kCr3; };
        const auto next =
            std::find_if(all.begin() + static_cast<std::ptrdiff_t>(i) + 1, all.end(), is_next_cr3);
        while (pip != found.pips.end() && pip->offset < now.offset) ++pip;
        const bool near = pip != found.pips.end() && (next == all.end() || pip->offset < next->offset);
        now.space = space_of_half(all[i].data, near ? &*pip : nullptr);
        now.pid = bundle_.spaces[now.space].pid;
        const bool with_tid =
            i + 1 < all.size() && all[i + 1].command == kTid && all[i + 1].offset == now.offset + kPtwSize;
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
    std::map<std::pair<std::uint64_t, std::uint64_t>, trace::TraceBuffer> saved;  // by frame and address
    std::set<std::pair<std::uint64_t, std::uint64_t>> own;                        // CR3 and address
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
    if (missing_pages_ == 0) return;
    bundle_.warnings.push_back(path_ + ": " + std::to_string(missing_pages_) +
                               " pages of code that the logs name are missing from dumps or frames, or "
                               "are not 4096 bytes long.");
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

  // The kernel's half is the same in all processes.
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
  std::uint64_t no_data_ = 0;
  std::uint64_t missing_pages_ = 0;
};

std::map<std::int64_t, std::string> streams_in(const std::string& folder) {
  return numbered_files(folder, kStreamName);
}

// The streams' folder: what was named, or the one in the folder of an analysis.
std::string streams_folder(const std::string& path) {
  const std::string inside = join(path, "ipt");
  return streams_in(path).empty() && is_folder(inside) ? inside : path;
}

bool sniff(const std::string& path) {
  if (is_folder(path)) return !streams_in(streams_folder(path)).empty();
  if (number_in_name(path, kStreamName)) return is_file(path);
  const std::string head = first_bytes(path, kPsbSearchBytes);
  const base::Bytes bytes(reinterpret_cast<const std::uint8_t*>(head.data()), head.size());
  return has_early_psb(bytes) && Scan::has_annotation(bytes);
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

const Format kDrakvufFormat{"drakvuf", "streams of DRAKVUF's ipt plugin (ipt_stream_vcpuN)", &sniff, &read};

}  // namespace ptkit::formats
