#include "flow/libipt/library.h"

#include "flow/libipt/decoder.h"
#include "packet/errata.h"

namespace ptkit::flow::libipt {
namespace {

pt_errata superset() noexcept {
  const packet::Errata ours = packet::errata_for(trace::Cpu{});
  pt_errata errata{};
  errata.bdm64 = ours.bdm64 ? 1U : 0U;
  errata.bdm70 = ours.bdm70 ? 1U : 0U;
  errata.skd007 = ours.skd007 ? 1U : 0U;
  errata.skd010 = ours.skd010 ? 1U : 0U;
  errata.skd022 = ours.skd022 ? 1U : 0U;
  errata.skl014 = ours.skl014 ? 1U : 0U;
  errata.skl168 = ours.skl168 ? 1U : 0U;
  errata.skz84 = ours.skz84 ? 1U : 0U;
  errata.apl11 = ours.apl11 ? 1U : 0U;
  errata.apl12 = ours.apl12 ? 1U : 0U;
  return errata;
}

void set_cpu(pt_config& config, const trace::Cpu& cpu) noexcept {
  if (cpu.known && cpu.model <= 0xff) {
    config.cpu.vendor = cpu.intel ? pcv_intel : pcv_unknown;
    config.cpu.family = cpu.family;
    config.cpu.model = static_cast<std::uint8_t>(cpu.model);
    config.cpu.stepping = cpu.stepping;
    if (cpu.intel && pt_cpu_errata(&config.errata, &config.cpu) >= 0) return;
    config.cpu = pt_cpu{};
  }
  config.errata = superset();
}

void set_ranges(pt_config& config, const std::array<trace::AddressRange, 4>& ranges) noexcept {
  pt_conf_addr_filter& filter = config.addr_filter;
  std::uint64_t* const first[] = {&filter.addr0_a, &filter.addr1_a, &filter.addr2_a, &filter.addr3_a};
  std::uint64_t* const last[] = {&filter.addr0_b, &filter.addr1_b, &filter.addr2_b, &filter.addr3_b};
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    filter.config.addr_cfg |= static_cast<std::uint64_t>(ranges[i].kind) << (4 * i);
    *first[i] = ranges[i].first;
    *last[i] = ranges[i].last;
  }
}

}  // namespace

pt_config make_config(base::Bytes stream, const trace::Configuration& configuration) noexcept {
  pt_config config;
  pt_config_init(&config);
  // pt_config is shared with the encoder, so its members are not const. Decoders only read.
  config.begin = const_cast<std::uint8_t*>(stream.data());
  config.end = config.begin + stream.size();
  const trace::Clock& clock = configuration.clock;
  config.cpuid_0x15_eax = clock.tsc_ctc_denominator;
  config.cpuid_0x15_ebx = clock.tsc_ctc_numerator;
  config.mtc_freq = clock.mtc_period_known ? clock.mtc_period : std::uint8_t{0};
  config.nom_freq = clock.max_nonturbo_ratio;
  set_cpu(config, configuration.cpu);
  set_ranges(config, configuration.ranges);
  return config;
}

base::Status to_status(int status) noexcept {
  using base::Status;
  switch (pt_errcode(status)) {
    case pte_ok:
      return Status::OK;
    case pte_eos:
      return Status::END_OF_STREAM;
    case pte_nosync:
      return Status::NO_SYNC;
    case pte_bad_opc:
      return Status::BAD_OPCODE;
    case pte_bad_packet:
      return Status::BAD_PACKET;
    case pte_noip:
    case pte_ip_suppressed:
      return Status::NO_IP;
    case pte_nomap:
    case pte_bad_image:
      return Status::NO_CODE;
    case pte_bad_insn:
      return Status::BAD_INSN;
    case pte_bad_retcomp:
    case pte_bad_query:
      return Status::TNT_MISMATCH;
    case pte_retstack_empty:
      return Status::RETURN_STACK_EMPTY;
    case pte_bad_context:
    case pte_bad_status_update:
    case pte_no_enable:
      return Status::UNEXPECTED_PACKET;
    case pte_event_ignored:
      return Status::FUP_MISMATCH;
    case pte_nomem:
      return Status::NO_MEMORY;
    case pte_bad_config:
    case pte_bad_cpu:
      return Status::BAD_CONFIG;
    default:
      return Status::UNSUPPORTED;
  }
}

std::string reference_version() {
  const pt_version version = pt_library_version();
  return std::to_string(version.major) + "." + std::to_string(version.minor) + "." +
         std::to_string(version.patch);
}

unsigned reference_header_version() noexcept { return LIBIPT_VERSION; }

}  // namespace ptkit::flow::libipt
