// The decoders that there are, by name.
#pragma once

#include <string>
#include <vector>

#include "bindings/bindings.h"
#include "columns/reader.h"
#include "flow/decoder.h"

namespace ptkit::bindings {

// Names of the engines of this build, ours first.
[[nodiscard]] std::vector<std::string> engine_names();

// Makes decoders of the session's streams; the session must outlive them.
[[nodiscard]] columns::SourceFactory make_factory(const std::string& engine,
                                                  std::shared_ptr<const Session> session,
                                                  const flow::FlowOptions& options);

// Makes our decoders from any checkpoint on; empty for other engines, and without code.
[[nodiscard]] columns::DecoderFactory make_decoder_factory(const std::string& engine,
                                                           std::shared_ptr<const Session> session,
                                                           const flow::FlowOptions& options);

// The same for packets; empty for our own decoder.
[[nodiscard]] columns::PacketFactory make_packet_factory(const std::string& engine,
                                                         std::shared_ptr<const Session> session);

}  // namespace ptkit::bindings
