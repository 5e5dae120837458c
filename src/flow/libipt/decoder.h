// The reference engine: libipt's decoders with ptkit's rows. Only this folder uses libipt.
//
// Expected differences, which are no errors of ptkit:
// - Every version of libipt rejects BBP, BIP, BEP (unknown opcode): an error row, then the next PSB.
// - CFE, EVD and MODE.Exec's interrupt flag need version 2.1, TRIG needs 2.2.
// - A near RET with a TIP does not pop libipt's call stack. By the manual it does.
// - Address filters: before 2.1 a TIP.PGD without IP at a conditional branch is an error.
// - libipt binds a TIP.PGD without IP to a MOV CR3 that has its PIP already: code after that is not walked.
// - A conditional branch to the next instruction: libipt does not say whether it is taken. The row has not
// taken.
// - Version 2.0 cannot resume within a PSB interval: Resync::IP is then as Resync::PSB.
// - A truncated packet at the end of the stream is no error.
// - `StreamSpan` is an interval of libipt's read offsets: it contains the packet, and is wider than ptkit's.
#pragma once

#include <memory>
#include <string>

#include "flow/decoder/decoder.h"

namespace ptkit::flow::libipt {

// Decodes one stream by libipt's instruction decoder. All references must outlive the decoder. `track` may be
// null, as for flow::FlowDecoder. ptkit's `insn` classifies instructions; their sizes and order are libipt's.
// Errata come from libipt's list of processors. For an unknown processor, all of ptkit's errata with a libipt
// flag are on.
[[nodiscard]] std::unique_ptr<flow::RowSource> make_reference(const trace::Stream& stream,
                                                              const trace::Configuration& configuration,
                                                              const code::image::Image& image,
                                                              const flow::FlowOptions& options,
                                                              flow::FlowSink& sink, time::TimeTrack* track);

// The version of the loaded library, "2.0.5".
[[nodiscard]] std::string reference_version();

// The version of libipt's header at build time, as `major << 8 | minor`.
[[nodiscard]] unsigned reference_header_version() noexcept;

}  // namespace ptkit::flow::libipt
