// RAII of libipt's handles. Converts configurations to libipt's, and error codes to ptkit's.
#pragma once

#include <intel-pt.h>

#include <memory>

#include "base/bytes.h"
#include "base/status.h"
#include "trace/bundle.h"

namespace ptkit::flow::libipt {

struct InsnDecoderDeleter {
  void operator()(pt_insn_decoder* decoder) const noexcept { pt_insn_free_decoder(decoder); }
};
struct PacketDecoderDeleter {
  void operator()(pt_packet_decoder* decoder) const noexcept { pt_pkt_free_decoder(decoder); }
};
struct LibraryImageDeleter {
  void operator()(pt_image* image) const noexcept { pt_image_free(image); }
};
using InsnDecoderPtr = std::unique_ptr<pt_insn_decoder, InsnDecoderDeleter>;
using PacketDecoderPtr = std::unique_ptr<pt_packet_decoder, PacketDecoderDeleter>;
using LibraryImagePtr = std::unique_ptr<pt_image, LibraryImageDeleter>;

// Sets buffer, processor, errata, clock and address filters. The caller sets the flags of the decoder
// variant.
[[nodiscard]] pt_config make_config(base::Bytes stream, const trace::Configuration& configuration) noexcept;

// `status` is a negative pt_error_code.
[[nodiscard]] base::Status to_status(int status) noexcept;

}  // namespace ptkit::flow::libipt
