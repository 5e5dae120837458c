// The reference engine: libipt's decoders behind our own rows. The only folder that knows libipt.
//
// What libipt cannot judge, so that callers do not take a difference for an error:
// - BBP, BIP, BEP are unknown opcodes to every version: an error row, then the next PSB.
// - CFE, EVD and MODE.Exec's interrupt flag need version 2.1, TRIG needs 2.2.
// - A near RET that came as a TIP does not pop its call stack (the manual says that it does).
// - Address filters: before 2.1 a TIP.PGD without IP at a conditional branch is an error.
// - A TIP.PGD without IP belongs to a MOV CR3 that had its PIP, too: code behind that is not walked.
// - A conditional branch whose target is the next instruction: taken or not cannot be seen from its
// instructions;
//   the row says not taken.
// - Its version 2.0 cannot take up a stream again within a PSB interval: Resync::IP is then as Resync::PSB.
// - A packet that the stream's end cuts is the end of the stream to it, without an error.
// - `Place` is where the library had read to: an interval that contains the packet, wider than our own
// decoder's.
#pragma once

#include <memory>
#include <string>

#include "columns/row_sink.h"
#include "flow/decoder.h"

namespace ptkit::reference {

// Decodes one stream by libipt's instruction decoder. All references must outlive it; `track` may be null, as
// for flow::FlowDecoder. Instructions are classified by our own `insn`; their sizes and order are libipt's.
// Errata come from libipt's own list of processors; for one that it does not know, all of ours that it has a
// flag for.
[[nodiscard]] std::unique_ptr<flow::RowSource> make_reference(const trace::Stream& stream,
                                                              const trace::Configuration& configuration,
                                                              const image::Image& image,
                                                              const flow::FlowOptions& options,
                                                              flow::FlowSink& sink, time::TimeTrack* track);

// The packets of one stream by libipt's packet decoder; see ReferencePackets for what it cannot judge.
[[nodiscard]] std::unique_ptr<flow::RowSource> make_reference_packets(
    const trace::Stream& stream, const trace::Configuration& configuration, bool sync,
    columns::RowSink& sink);

// Of the library that is loaded, "2.0.5".
[[nodiscard]] std::string reference_version();

// Of the header that this was built with, as `major << 8 | minor`: decides what it can judge.
[[nodiscard]] unsigned reference_header_version() noexcept;

}  // namespace ptkit::reference
