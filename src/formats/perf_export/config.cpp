#include "formats/perf_export/config.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/bits.h"
#include "formats/perf_data/file.h"
#include "formats/perf_export/code.h"
#include "ptkit/rtit_regs.h"
#include "trace/clock.h"
#include "trace/warning_codes.h"

namespace ptkit::formats::perf {

namespace {

using Json = nlohmann::json;

using base::bit;

constexpr std::uint64_t field(unsigned shift, unsigned width) { return (bit(width) - 1) << shift; }

// Bits of IA32_RTIT_CTL that are terms of the event. The term "pt" makes the kernel use all of them.
constexpr std::uint64_t kPassThrough = 1;
constexpr std::uint64_t kMtcFreq = field(PT_CTL_MTC_FREQ_SHIFT, PT_CTL_MTC_FREQ_WIDTH);
constexpr std::uint64_t kTerms =
    bit(PT_CTL_CYC_EN) | bit(PT_CTL_PWR_EVT_EN) | bit(PT_CTL_FUP_ON_PTW) | bit(PT_CTL_MTC_EN) |
    bit(PT_CTL_TSC_EN) | bit(PT_CTL_DIS_RETC) | bit(PT_CTL_PTW_EN) | bit(PT_CTL_BRANCH_EN) | kMtcFreq |
    field(PT_CTL_CYC_THRESH_SHIFT, PT_CTL_CYC_THRESH_WIDTH) |
    field(PT_CTL_PSB_FREQ_SHIFT, PT_CTL_PSB_FREQ_WIDTH) | bit(PT_CTL_EVENT_EN) | bit(PT_CTL_DIS_TNT);

// perf_event_attr's flags.
constexpr std::uint64_t kFlags = bit(1) | bit(6) | bit(8) | bit(9) | bit(13) | bit(kSampleIdAll) | bit(20) |
                                 bit(23) | bit(24) |
                                 bit(26);  // inherit, exclude_hv, mmap, comm, task,
                                           // exclude_guest, mmap2, comm_exec, context_switch

class Bytes {
 public:
  template <typename... Numbers>
  Bytes& add(Numbers... numbers) {
    (base::append_le(bytes_, numbers), ...);
    return *this;
  }
  // Appends a feature's string: length, then text padded to a multiple of 64 bytes.
  Bytes& text(const std::string& text) {
    const std::size_t size = (text.size() + 64) / 64 * 64;
    add(static_cast<std::uint32_t>(size));
    bytes_.insert(bytes_.end(), text.begin(), text.end());
    bytes_.resize(bytes_.size() + size - text.size());
    return *this;
  }
  Bytes& raw(base::Bytes bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  [[nodiscard]] std::vector<std::uint8_t> take() { return std::move(bytes_); }

 private:
  std::vector<std::uint8_t> bytes_;
};

std::uint64_t config_of_packets(const std::vector<StreamPackets>& streams) {
  using packet::PacketKind;
  std::uint64_t config = bit(PT_CTL_BRANCH_EN);
  for (const StreamPackets& stream : streams) {
    if (stream.has(PacketKind::TSC)) config |= bit(PT_CTL_TSC_EN);
    if (stream.has(PacketKind::MTC)) config |= bit(PT_CTL_MTC_EN);
    if (stream.has(PacketKind::CYC)) config |= bit(PT_CTL_CYC_EN);
    if (stream.has(PacketKind::PTW)) config |= bit(PT_CTL_PTW_EN);
  }
  return config;
}

const char* unit_name(const WrittenEvent& event) {
  return event.kind == TraceKind::INTEL_BTS ? "intel_bts" : kPtPmu;
}

std::string event_name(const WrittenEvent& event) {
  std::string name = std::string(unit_name(event)) + "/";
  const auto term = [&](unsigned number, const char* text) {
    if ((event.config >> number & 1U) != 0) name += std::string(text) + ",";
  };
  term(PT_CTL_CYC_EN, "cyc");
  term(PT_CTL_MTC_EN, "mtc");
  term(PT_CTL_TSC_EN, "tsc");
  term(PT_CTL_DIS_RETC, "noretcomp");
  term(PT_CTL_PTW_EN, "ptw");
  if (name.back() == ',') name.pop_back();
  name += '/';
  if (event.exclude_kernel) name += 'u';
  if (event.exclude_user) name += 'k';
  return name;
}

// perf derives a ratio from the TSC's frequency in steps of 100 MHz and divides by it: it must not be 0.
std::uint64_t ratio_of(const trace::Clock& clock) {
  constexpr std::uint64_t kLeastHz = 50'000'000;
  const std::uint64_t hz = trace::perf_tsc_from_ns(clock, clock.time_zero + trace::kNsPerSecond);
  return clock.max_nonturbo_ratio == 0 && hz < kLeastHz ? 1 : clock.max_nonturbo_ratio;
}

// Notes members of the metadata that perf.data cannot hold.
void note_metadata(const Json& meta, std::vector<trace::Warning>& notes) {
  std::string names;
  for (const auto& [name, value] : meta.items()) {
    static const std::vector<std::string> kKept{
        "backend", "command",      "kernel",       "perf",         "cpu",           "clock",   "rtit_ctl",
        "ranges",  "ranges_known", "space_ranges", "architecture", "missing_files", "warnings"};
    if (std::ranges::find(kKept, name) == kKept.end() && !(name == "machine" && meta.contains("perf")))
      names += (names.empty() ? "" : ", ") + name;
  }
  if (!names.empty()) notes.push_back(warn(trace::WarningCode::EXPORT_METADATA, names));
}

}  // namespace

WrittenEvent written_event(const trace::TraceBundle& bundle, const std::vector<StreamPackets>& packets,
                           std::vector<trace::Warning>& notes) {
  const trace::Configuration& from = bundle.configuration;
  WrittenEvent event;
  const bool is_bts = std::ranges::all_of(bundle.streams, [](const trace::Stream& stream) {
    return stream.kind == trace::StreamKind::BRANCH_RECORDS;
  });
  if (is_bts) {
    event.kind = TraceKind::INTEL_BTS;
    event.exclude_kernel = std::ranges::none_of(bundle.code, is_kernel);
    return event;
  }
  if (from.rtit_ctl_known) {
    event.config = from.rtit_ctl & kTerms;
    event.exclude_kernel = (from.rtit_ctl >> PT_CTL_OS & 1U) == 0;
    event.exclude_user = (from.rtit_ctl >> PT_CTL_USER & 1U) == 0;
  } else {
    event.config = config_of_packets(packets);
    event.exclude_kernel = std::ranges::none_of(bundle.code, is_kernel);
    notes.push_back(warn(trace::WarningCode::EXPORT_CONFIG_UNKNOWN));
  }
  event.config |= kPassThrough;
  if (from.clock.mtc_period_known) {
    event.config &= ~kMtcFreq;
    event.config |= (std::uint64_t{from.clock.mtc_period} << PT_CTL_MTC_FREQ_SHIFT) & kMtcFreq;
  }
  return event;
}

std::vector<std::uint8_t> attr_bytes(const WrittenEvent& event) {
  std::uint64_t flags = kFlags;
  if (event.exclude_user) flags |= bit(kExcludeUser);
  if (event.exclude_kernel) flags |= bit(kExcludeKernel);
  constexpr std::uint64_t kReadId = 4;  // PERF_FORMAT_ID
  std::vector<std::uint8_t> bytes =
      Bytes()
          .add(kPmuType, static_cast<std::uint32_t>(kAttrBytes), event.config, std::uint64_t{1},
               (1U << SAMPLE_IP) | kWrittenSampleType, kReadId, flags)
          .take();
  bytes.resize(kAttrBytes);
  return bytes;
}

std::vector<std::uint8_t> auxtrace_info(const trace::TraceBundle& bundle, const WrittenEvent& event,
                                        const trace::Clock& clock, bool per_cpu,
                                        const std::optional<std::string>& filter) {
  // have_sched_switch: perf uses switches in. (With 3, perf would wait for __switch_to in the trace, which
  // the trace may lack.)
  constexpr std::uint64_t kSwitchesIn = 2;
  const auto number = [](auto value) { return static_cast<std::uint64_t>(value); };
  RecordBytes record(AUXTRACE_INFO, 0);
  record.add(static_cast<std::uint32_t>(event.kind), std::uint32_t{0}, number(kPmuType));
  record.add(number(clock.time_shift), number(clock.time_mult), clock.time_zero, number(true));
  if (event.kind == TraceKind::INTEL_BTS) {
    record.add(number(false));  // no snapshots
    const base::Bytes bytes = record.bytes();
    return {bytes.begin(), bytes.end()};
  }
  record.add(bit(PT_CTL_TSC_EN), bit(PT_CTL_DIS_RETC), per_cpu ? kSwitchesIn : 0, number(false));
  record.add(number(per_cpu), bit(PT_CTL_MTC_EN),
             clock.mtc_period_known || bundle.configuration.rtit_ctl_known ? kMtcFreq : 0,
             number(clock.tsc_ctc_numerator), number(clock.tsc_ctc_denominator), bit(PT_CTL_CYC_EN),
             number(ratio_of(clock)));
  if (filter) {
    record.add(number(filter->size()));
    if (!filter->empty()) record.text(*filter);
    record.add(number(0));  // no event trace
  }
  const base::Bytes bytes = record.bytes();
  return {bytes.begin(), bytes.end()};
}

std::vector<std::uint8_t> time_conversion(const trace::Clock& clock) {
  constexpr unsigned kShort = 1U << 8U;  // cap_user_time_short, the byte after cap_user_time_zero
  RecordBytes record(TIME_CONV, 0);
  record.add(std::uint64_t{clock.time_shift}, std::uint64_t{clock.time_mult}, clock.time_zero,
             clock.time_cycles, clock.time_mask == 0 ? ~std::uint64_t{0} : clock.time_mask,
             std::uint64_t{clock.time_mask == 0 ? 1U : 1U | kShort});
  const base::Bytes bytes = record.bytes();
  return {bytes.begin(), bytes.end()};
}

std::vector<WrittenFeature> written_features(const trace::TraceBundle& bundle, const WrittenEvent& event,
                                             std::vector<trace::Warning>& notes) {
  const Json parsed = Json::parse(bundle.metadata, nullptr, false);
  const Json meta = parsed.is_object() ? parsed : Json::object();
  const auto text_of = [&](const char* name) {
    const auto found = meta.find(name);
    return found != meta.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  std::vector<WrittenFeature> features;
  const auto add = [&](unsigned number, Bytes& bytes) { features.push_back({number, bytes.take()}); };
  const auto add_text = [&](unsigned number, const std::string& text) {
    if (!text.empty()) add(number, Bytes().text(text));
  };
  note_metadata(meta, notes);
  if (meta.contains("perf")) add_text(FEATURE_HOSTNAME, text_of("machine"));
  add_text(FEATURE_OSRELEASE, text_of("kernel"));
  add_text(FEATURE_VERSION, meta.contains("perf") ? text_of("perf") : "ptkit");
  const std::string architecture = text_of("architecture");
  add_text(FEATURE_ARCH, architecture.empty() ? "x86_64" : architecture);
  std::int64_t cpus = 1;
  for (const trace::Stream& stream : bundle.streams) cpus = std::max(cpus, stream.cpu + 1);
  add(FEATURE_NRCPUS, Bytes().add(static_cast<std::uint32_t>(cpus), static_cast<std::uint32_t>(cpus)));
  if (const trace::Cpu& cpu = bundle.configuration.cpu; cpu.known) {
    add_text(FEATURE_CPUID, std::string(cpu.intel ? "GenuineIntel" : "AuthenticAMD") + "," +
                                std::to_string(cpu.family) + "," + std::to_string(cpu.model) + "," +
                                std::to_string(cpu.stepping));
  }
  if (const auto command = meta.find("command"); command != meta.end() && command->is_array()) {
    Bytes words;
    words.add(static_cast<std::uint32_t>(command->size()));
    for (const Json& word : *command) words.text(word.is_string() ? word.get<std::string>() : word.dump());
    add(FEATURE_CMDLINE, words);
  }
  add(FEATURE_EVENT_DESC, Bytes()
                              .add(std::uint32_t{1}, static_cast<std::uint32_t>(kAttrBytes))
                              .raw(attr_bytes(event))
                              .add(std::uint32_t{1})
                              .text(event_name(event))
                              .add(kEventId));
  add(FEATURE_PMU_MAPPINGS, Bytes().add(std::uint32_t{1}, kPmuType).text(unit_name(event)));
  const trace::IpPayloads payloads = bundle.configuration.ip_payloads;
  if (event.kind == TraceKind::INTEL_PT && payloads != trace::IpPayloads::UNKNOWN) {
    const char* const lip = payloads == trace::IpPayloads::LINEAR ? "1" : "0";
    add(FEATURE_PMU_CAPS,
        Bytes().add(std::uint32_t{1}, std::uint32_t{1}).text(kLipCap).text(lip).text(unit_name(event)));
  }
  return features;
}

}  // namespace ptkit::formats::perf
