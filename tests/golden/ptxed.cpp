// Prints instructions, events and errors as libipt's ptxed does, so that its expected outputs can be compared
// with.
#include <cinttypes>
#include <cstdio>
#include <memory>

#include "case.h"
#include "flow/decoder/decoder.h"
#include "flow/rows/text.h"
#include "packet/decoder.h"

namespace ptkit::golden {
namespace {

using base::Status;
using flow::EventKind;
using packet::Packet;
using packet::PacketKind;

struct Options {
  bool event_ip = false;
  bool ticks = false;
  bool iflags = false;
  bool quiet = false;
  bool resync = false;
  bool by_block = false;
  bool show_blocks = false;
  bool end_on_call = false;
  bool end_on_jump = false;
  bool stat_insn = false;
  bool stat_blocks = false;
};

Options options_of(const Case& test_case) {
  Options options;
  options.event_ip = test_case.has_option("--event:ip");
  options.ticks = test_case.has_option("--event:tick");
  options.iflags = test_case.has_option("--event:iflags");
  options.quiet = test_case.has_option("--quiet");
  options.resync = test_case.has_option("--resync-on-error");
  options.by_block = test_case.effective_decoder == "block";
  options.show_blocks = test_case.has_option("--block:show-blocks");
  options.end_on_call = test_case.has_option("--block:end-on-call");
  options.end_on_jump = test_case.has_option("--block:end-on-jump");
  // --stat alone prints all statistics.
  const bool one = test_case.has_option("--stat:insn") || test_case.has_option("--stat:blocks");
  const bool all = test_case.has_option("--stat") && !one;
  options.stat_insn = all || test_case.has_option("--stat:insn");
  options.stat_blocks = (all && options.by_block) || test_case.has_option("--stat:blocks");
  return options;
}

template <typename... Values>
std::string format(const char* form, Values... values) {
  char text[200];
  const int length = std::snprintf(text, sizeof text, form, values...);
  return std::string(text, static_cast<std::size_t>(length));
}

std::string hex16(std::uint64_t value) { return format("%016" PRIx64, value); }

// The packets of a stream, by offset.
class PacketList {
 public:
  explicit PacketList(base::Bytes stream) : size_(stream.size()) {
    packet::PacketDecoder packets(stream);
    Status status = packets.sync_forward(0);
    while (status == Status::OK) {
      Packet packet;
      status = packets.next(packet);
      if (status == Status::END_OF_STREAM) break;
      if (status != Status::OK) {
        status = packets.sync_forward();
      } else if (packet.kind != PacketKind::PAD) {
        packets_.push_back(packet);
      }
    }
  }

  [[nodiscard]] const Packet* at(std::uint64_t offset) const {
    const std::size_t i = index(offset);
    return i < packets_.size() && packets_[i].offset == offset ? &packets_[i] : nullptr;
  }
  [[nodiscard]] const Packet* before(std::uint64_t offset) const {
    const std::size_t i = index(offset);
    return i > 0 ? &packets_[i - 1] : nullptr;
  }
  [[nodiscard]] std::uint64_t offset_behind(std::uint64_t offset) const {
    const std::size_t i = index(offset) + 1;
    return i < packets_.size() ? packets_[i].offset : size_;
  }

 private:
  [[nodiscard]] std::size_t index(std::uint64_t offset) const {
    std::size_t i = 0;
    while (i < packets_.size() && packets_[i].offset < offset) ++i;
    return i;
  }
  std::vector<Packet> packets_;
  std::uint64_t size_;
};

// Does a FUP come before this packet that belongs to no other?
bool follows_free_fup(const Packet& packet, const PacketList& packets) {
  const Packet* fup = packets.before(packet.offset);
  if (fup == nullptr || fup->kind != PacketKind::FUP) return false;
  const Packet* owner = packets.before(fup->offset);
  if (owner == nullptr) return true;
  const bool commit_or_begin = owner->kind == PacketKind::MODE_TSX && (owner->payload & 2U) == 0;
  return !commit_or_begin && owner->kind != PacketKind::MODE_EXEC && owner->kind != PacketKind::OVF &&
         (owner->flags & Packet::IP_BIT) == 0;
}

// libipt has already read the packet after these when it applies them, and reports that one in errors.
bool reads_ahead(const Packet& packet, const PacketList& packets) {
  switch (packet.kind) {
    case PacketKind::TNT_8:
    case PacketKind::TNT_64:
    case PacketKind::CBR:
    case PacketKind::MNT:
    case PacketKind::PIP:
    case PacketKind::VMCS:
    case PacketKind::TRACE_STOP:
      return true;
    case PacketKind::PTW:
    case PacketKind::EXSTOP:
    case PacketKind::TRIG:
      return (packet.flags & Packet::IP_BIT) == 0;
    case PacketKind::TIP_PGD:
      return !follows_free_fup(packet, packets);
    default:
      return false;
  }
}

const char* error_text(const flow::FlowError& row, const Packet* packet) {
  switch (row.code) {
    case Status::NO_CODE:
      return "no memory mapped at this address";
    case Status::BAD_INSN:
      return "unknown instruction";
    case Status::TNT_MISMATCH:
    case Status::TIP_MISMATCH:
    case Status::FUP_MISMATCH:
      return "trace stream does not match query";
    case Status::RETURN_STACK_EMPTY:
      return "compressed return without call";
    case Status::UNEXPECTED_PACKET:
      return packet != nullptr &&
                     (packet->kind == PacketKind::PSBEND || packet->kind == PacketKind::MODE_EXEC)
                 ? "bad status update"
                 : "unexpected packet context";
    case Status::NO_IP:
      return "no ip";
    case Status::BAD_OPCODE:
      return "unknown opcode";
    case Status::TRUNCATED_PACKET:
      return "reached end of trace stream";
    default:
      return "unknown packet";
  }
}

class Printer : public flow::FlowSink {
 public:
  explicit Printer(const Case& test_case) : options_(options_of(test_case)), packets_(test_case.stream) {}

  void on_block(const flow::Block& block) override;
  void on_branch(const flow::Branch& row) override;
  void on_event(const flow::Event& row) override;
  void on_error(const flow::FlowError& row) override;
  void on_gap(const flow::Gap& row) override {
    if ((row.flags & flow::TO_KNOWN) != 0) follows_ = true;
  }
  [[nodiscard]] std::string finish();

 private:
  void line(const std::string& text) {
    if (!options_.quiet) out_ += text + "\n";
  }
  [[nodiscard]] std::string text_of(const flow::Event& row) const;
  [[nodiscard]] std::string with_ip(const std::string& text, const flow::Event& row) const;
  void update_state(const flow::Event& row);

  Options options_;
  PacketList packets_;
  std::string out_;
  std::uint64_t instructions_ = 0;
  std::uint64_t blocks_ = 0;
  bool fresh_block_ = true;  // the next instruction begins one of libipt's blocks
  bool on_ = false;
  bool follows_ = false;  // execution is known
  bool lost_ = false;
};

void Printer::on_block(const flow::Block& block) {
  if (fresh_block_) {
    ++blocks_;
    if (options_.show_blocks) line("[block]");
  }
  fresh_block_ = false;
  std::uint64_t ip = block.ip;
  const std::string mark = (block.flags & flow::IN_TX) != 0 ? "? " : "";
  for (const flow::BlockInsn& insn : block.insns) {
    line(mark + hex16(ip));
    ip += insn.size;
    ++instructions_;
  }
}

// libipt's blocks continue over direct branches, unless an option disables it.
void Printer::on_branch(const flow::Branch& row) {
  switch (row.kind) {
    case flow::BranchKind::JUMP:
      fresh_block_ = fresh_block_ || options_.end_on_jump;
      break;
    case flow::BranchKind::CALL:
      fresh_block_ = fresh_block_ || options_.end_on_call;
      break;
    default:
      fresh_block_ = true;
      break;
  }
}

void Printer::update_state(const flow::Event& row) {
  const bool known = (row.flags & flow::EV_IP_KNOWN) != 0;
  switch (row.kind) {
    case EventKind::ENABLED:
      on_ = follows_ = true;
      break;
    case EventKind::DISABLED:
    case EventKind::ASYNC_DISABLED:
      on_ = follows_ = false;
      break;
    case EventKind::OVERFLOW:
      on_ = follows_ = known;
      break;
    default:
      break;
  }
  lost_ = lost_ && !follows_;
}

void Printer::on_event(const flow::Event& row) {
  fresh_block_ = true;
  if ((row.flags & flow::EV_STATUS) != 0) return update_state(row);
  // After an error, ptxed reports disabled packets before it continues.
  if (row.kind == EventKind::ENABLED && on_) line("[disabled]");
  update_state(row);
  if (row.kind == EventKind::IFLAG && !options_.iflags) return;
  const std::string text = text_of(row);
  if (text.empty()) return;
  line("[" + text + "]");
}

std::string Printer::with_ip(const std::string& text, const flow::Event& row) const {
  if (!options_.event_ip || (row.flags & flow::EV_IP_KNOWN) == 0) return text;
  const Packet* ip_packet = packets_.at(row.span.offset);
  const bool by_instruction = ip_packet != nullptr && ip_packet->kind != PacketKind::FUP;
  switch (row.kind) {
    case EventKind::PTWRITE:
    case EventKind::IRET:
    case EventKind::UIRET:
    case EventKind::VMENTRY:
    case EventKind::SWINTR:
    case EventKind::SYSCALL:
      // The IP is that of the instruction that the event is bound to; ptxed prints the IP of a packet.
      if (by_instruction) return text;
      break;
    default:
      break;
  }
  return text + ", ip: " + hex16(row.ip);
}

std::string async_text(const flow::Event& row, const Options& options) {
  const bool known = (row.flags & flow::EV_IP_KNOWN) != 0;
  const bool branch = row.kind == EventKind::ASYNC_BRANCH;
  std::string text = branch ? "interrupt" : "disabled";
  if (!options.event_ip) return text;
  text += (branch ? ", from: " : ", at: ") + hex16(row.payload);
  if (known) text += (branch ? ", to: " : ", ip: ") + hex16(row.ip);
  return text;
}

std::string Printer::text_of(const flow::Event& row) const {
  const std::string text = flow::event_text(row);
  switch (row.kind) {
    case EventKind::ASYNC_DISABLED:
    case EventKind::ASYNC_BRANCH:
      return async_text(row, options_);
    case EventKind::ASYNC_PAGING:
    case EventKind::ASYNC_VMCS:
      return text + (options_.event_ip ? ", ip: " + hex16(row.ip) : "");
    case EventKind::PAGING:
    case EventKind::VMCS:
    case EventKind::STOP:
    case EventKind::PWRE:
    case EventKind::PWRX:
    case EventKind::CBR:
    case EventKind::MNT:
    case EventKind::SIPI:
      return text;
    // Not known to libipt.
    case EventKind::PEBS_BEGIN:
    case EventKind::PEBS_ITEM:
    case EventKind::PEBS_END:
    case EventKind::EVENT_DATA:
    case EventKind::STATUS:
      return {};
    default:
      return with_ip(text, row);
  }
}

void Printer::on_error(const flow::FlowError& row) {
  const Packet* packet = packets_.at(row.span.offset);
  const char* text = error_text(row, packet);
  std::uint64_t offset = row.span.offset;
  const bool by_code = row.code != Status::UNEXPECTED_PACKET && row.code != Status::NO_IP;
  if (by_code && packet != nullptr && reads_ahead(*packet, packets_)) offset = packets_.offset_behind(offset);
  // For errors in packets, ptxed prints the target of its last instruction.
  const bool known = row.ip_known && (by_code || instructions_ != 0);
  const auto error_line = [&](const char* what) {
    out_ += format("[%" PRIx64 ", %" PRIx64 ": %s: %s]\n", offset, known ? row.ip : 0, what, text);
  };
  error_line("error");
  // A contradiction in a PSB+ occurs again when ptxed tries to continue there.
  if (options_.resync && row.code == Status::UNEXPECTED_PACKET) error_line("resync error");
  fresh_block_ = true;
  follows_ = false;
  lost_ = true;
}

std::string Printer::finish() {
  if (follows_) line("[end of trace]");
  if (options_.stat_insn) out_ += format("insn: %" PRIu64 ".\n", instructions_);
  if (options_.stat_blocks) out_ += format("blocks:\t%" PRIu64 ".\n", blocks_);
  return out_;
}

}  // namespace

std::string run_ptxed(const Case& test_case) {
  const std::shared_ptr<trace::TraceBundle> bundle = bundle_of(test_case);
  const code::image::Image image(bundle);
  const Options options = options_of(test_case);
  Printer printer(test_case);
  flow::FlowOptions flow_options;
  // --resync-on-error continues at the next event with an IP.
  flow_options.resync = options.resync ? flow::Resync::IP : flow::Resync::PSB;
  flow_options.errata = test_case.errata;
  flow_options.ticks = options.ticks;
  flow_options.ticks_over_overflow = test_case.has_option("--insn:keep-tcal-on-ovf");
  flow::FlowDecoder decoder(bundle->streams[0], test_case.configuration, image, flow_options, printer,
                            nullptr);
  while (decoder.run()) {
  }
  return printer.finish();
}

}  // namespace ptkit::golden
