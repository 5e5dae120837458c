#include "api/python/engines.h"

#include "flow/decoder/record_decoder.h"

#if PTKIT_HAVE_LIBIPT
#include "flow/libipt/decoder.h"
#include "flow/libipt/packets.h"
#include "tables/columns/sources/packet_source.h"
#endif

namespace ptkit::api::python {

std::vector<std::string> engine_names() {
#if PTKIT_HAVE_LIBIPT
  return {"ptkit", "simple", "libipt"};
#else
  return {"ptkit", "simple"};
#endif
}

tables::columns::SourceFactory make_factory(const std::string& engine, std::shared_ptr<const Session> session,
                                            const flow::FlowOptions& options) {
#if PTKIT_HAVE_LIBIPT
  if (engine == "libipt") {
    return [session = std::move(session), options](std::uint32_t index, flow::FlowSink& sink,
                                                   time::TimeTrack* track) {
      const auto& bundle = *session->bundle;
      return flow::libipt::make_reference(bundle.streams[index], bundle.configuration, *session->image,
                                          options, sink, track);
    };
  }
#endif
  if (engine != "ptkit" && engine != "simple") {
    raise_failure({base::Status::UNSUPPORTED, 0,
                   "engine \"" + engine +
                       "\" is not in this build; on Debian and Ubuntu: apt-get install libipt-dev, "
                       "then build again"});
  }
  flow::FlowOptions ours = options;
  ours.fast = engine == "ptkit";
  return [session = std::move(session), ours](std::uint32_t index, flow::FlowSink& sink,
                                              time::TimeTrack* track) -> std::unique_ptr<flow::RowSource> {
    const auto& bundle = *session->bundle;
    const trace::Stream& stream = bundle.streams[index];
    flow::CodeCachePool* pool = session->code_caches.get();
    if (stream.kind == trace::StreamKind::BRANCH_RECORDS) {
      return std::make_unique<flow::RecordDecoder>(stream, bundle.configuration, *session->image, sink, track,
                                                   pool);
    }
    return std::make_unique<flow::FlowDecoder>(stream, bundle.configuration, *session->image, ours, sink,
                                               track, pool);
  };
}

tables::columns::DecoderFactory make_decoder_factory(const std::string& engine,
                                                     std::shared_ptr<const Session> session,
                                                     const flow::FlowOptions& options) {
  if ((engine != "ptkit" && engine != "simple") || session->image->empty()) return {};
  flow::FlowOptions ours = options;
  ours.fast = engine == "ptkit";
  return [session = std::move(session), ours](const trace::Stream& stream, flow::FlowSink& sink,
                                              time::TimeTrack* track, const flow::FlowState* from,
                                              bool speculative) {
    const auto& bundle = *session->bundle;
    flow::CodeCachePool* pool = session->code_caches.get();
    return from == nullptr
               ? std::make_unique<flow::FlowDecoder>(stream, bundle.configuration, *session->image, ours,
                                                     sink, track, pool)
               : std::make_unique<flow::FlowDecoder>(stream, bundle.configuration, *session->image, ours,
                                                     sink, track, pool, *from, speculative);
  };
}

tables::columns::PacketFactory make_packet_factory([[maybe_unused]] const std::string& engine,
                                                   [[maybe_unused]] std::shared_ptr<const Session> session) {
#if PTKIT_HAVE_LIBIPT
  if (engine == "libipt") {
    return [session = std::move(session)](std::uint32_t index, bool sync, tables::columns::RowSink& sink) {
      const auto& bundle = *session->bundle;
      const base::Bytes bytes = bundle.streams[index].data.bytes();
      return std::make_unique<tables::columns::PacketSource<flow::libipt::ReferencePackets>>(
          bytes, flow::libipt::ReferencePackets(bytes, bundle.configuration), sync, sink);
    };
  }
#endif
  return {};
}

}  // namespace ptkit::api::python
