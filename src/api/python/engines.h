// The decoding engines by name.
#pragma once

#include <string>
#include <vector>

#include "api/python/bindings.h"
#include "flow/decoder/decoder.h"
#include "tables/columns/read/reader.h"

namespace ptkit::api::python {

// Names of the engines of this build, ptkit's own first.
[[nodiscard]] std::vector<std::string> engine_names();

// Creates decoders of the session's streams. The session must outlive the decoders.
[[nodiscard]] tables::columns::SourceFactory make_factory(const std::string& engine,
                                                          std::shared_ptr<const Session> session,
                                                          const flow::FlowOptions& options);

// Creates ptkit's decoders from a checkpoint on. Empty for other engines, and without code.
[[nodiscard]] tables::columns::DecoderFactory make_decoder_factory(const std::string& engine,
                                                                   std::shared_ptr<const Session> session,
                                                                   const flow::FlowOptions& options);

// Creates packet decoders of another engine. Empty for ptkit's own decoder.
[[nodiscard]] tables::columns::PacketFactory make_packet_factory(const std::string& engine,
                                                                 std::shared_ptr<const Session> session);

}  // namespace ptkit::api::python
