#include "capture/linux/session/missing_code.h"

#include <algorithm>
#include <set>
#include <sstream>
#include <vector>

#include "base/addresses.h"
#include "capture/common/errors.h"
#include "formats/common/files.h"
#include "formats/registry.h"
#include "packet/errata.h"
#include "packet/scan.h"

namespace ptkit::capture {

namespace {

constexpr std::uint64_t kKernelHalf = std::uint64_t{1} << 63U;
constexpr std::uint64_t kVsyscall = 0xffffffffff600000;  // a page of user code
constexpr std::size_t kRows = 4096;
constexpr std::size_t kMostAddresses = 100'000;
constexpr std::size_t kMostNames = 5;

// Addresses of the kernel at which code was executed, by the packets, if no saved code has them.
class Unsaved {
 public:
  Unsaved(const KernelCode& kernel, const packet::Errata& errata) : kernel_(kernel), errata_(errata) {}

  // A packet never spans a loss. False: `go_on` ended it.
  [[nodiscard]] bool add_stream(const trace::Stream& stream, const std::function<bool()>& go_on) {
    const base::Bytes bytes = stream.data.bytes();
    std::size_t begin = 0;
    for (const trace::KnownLoss& loss : stream.losses) {
      const auto end = static_cast<std::size_t>(std::min<std::uint64_t>(loss.offset, bytes.size()));
      if (end <= begin) continue;
      if (!add_part(bytes.subspan(begin, end - begin), go_on)) return false;
      begin = end;
    }
    return add_part(bytes.subspan(begin), go_on);
  }
  [[nodiscard]] const std::set<std::uint64_t>& addresses() const noexcept { return addresses_; }

 private:
  [[nodiscard]] bool add_part(base::Bytes bytes, const std::function<bool()>& go_on) {
    packet::PacketDecoder decoder(bytes, {}, errata_);
    base::Status status = decoder.sync_forward(0);
    while (status == base::Status::OK && go_on()) {
      packet::DecoderState state = decoder.state();
      const packet::FilledPackets filled = packet::fill_packets(bytes, state, errata_, columns(), kRows);
      add_rows(filled.rows);
      decoder.set_state(state);
      status = filled.status;
      const bool bad = status != base::Status::OK && status != base::Status::END_OF_STREAM;
      if (bad) status = decoder.sync_forward(state.position + 1);
    }
    return status != base::Status::OK;
  }
  void add_rows(std::size_t rows) {
    for (std::size_t i = 0; i < rows; ++i) {
      const auto kind = static_cast<packet::PacketKind>(kinds_[i]);
      const bool executed = packet::has_ip_payload(kind) && kind != packet::PacketKind::TIP_PGD;
      if (executed && (flags_[i] & packet::Packet::IP_KNOWN) != 0 && ips_[i] >= kKernelHalf) add(ips_[i]);
    }
  }
  void add(std::uint64_t ip) {
    if (ip == last_ || addresses_.size() >= kMostAddresses) return;
    last_ = ip;
    if (ip / base::kPageBytes * base::kPageBytes == kVsyscall) return;
    if (!kernel_.has_code(ip)) addresses_.insert(ip);
  }
  [[nodiscard]] packet::PacketColumns columns() noexcept {
    packet::PacketColumns out;
    out.kind = kinds_.data();
    out.flags = flags_.data();
    out.ip = ips_.data();
    return out;
  }

  const KernelCode& kernel_;
  packet::Errata errata_;
  std::vector<std::uint8_t> kinds_ = std::vector<std::uint8_t>(kRows + packet::kPacketRowSlack);
  std::vector<std::uint8_t> flags_ = std::vector<std::uint8_t>(kRows + packet::kPacketRowSlack);
  std::vector<std::uint64_t> ips_ = std::vector<std::uint64_t>(kRows + packet::kPacketRowSlack);
  std::set<std::uint64_t> addresses_;
  std::uint64_t last_ = 0;
};

base::Failure missing(const std::vector<std::uint64_t>& pages) {
  std::ostringstream text;
  text << pages.size() << (pages.size() == 1 ? " page" : " pages")
       << " of code without a symbol (a filter of seccomp, for example) gone or unreadable when the "
          "recording ended:";
  for (std::size_t i = 0; i < std::min(pages.size(), kMostNames); ++i)
    text << (i == 0 ? " 0x" : ", 0x") << std::hex << pages[i];
  if (pages.size() > kMostNames) text << ", ...";
  return unsupported(text.str());
}

}  // namespace

std::optional<base::Failure> save_missing_code(BundleOutput& output, const KernelCode& kernel,
                                               const std::function<bool()>& go_on) {
  output.flush();
  if (output.failed() || !formats::is_file(output.path())) return {};
  auto opened = formats::open(output.path(), {.format = "ptk"});
  if (!opened.ok()) return {};  // output.finish() reports it
  const trace::TraceBundle& bundle = opened.value();
  Unsaved unsaved(kernel, packet::errata_for(bundle.configuration.cpu));
  for (const trace::Stream& stream : bundle.streams) {
    if (stream.kind == trace::StreamKind::PROCESSOR_TRACE && !unsaved.add_stream(stream, go_on))
      return unsupported("the search for code without a symbol was interrupted");
  }
  const std::vector<std::uint64_t> pages = kernel.save_pages(output, unsaved.addresses());
  return pages.empty() ? std::optional<base::Failure>() : missing(pages);
}

}  // namespace ptkit::capture
