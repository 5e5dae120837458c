// Splits a recording at a PSB into two streams with the same code.
#pragma once

#include "packet/decoder.h"
#include "trace/bundle.h"

namespace ptkit::bench {

// The halves of the first stream. The second half is empty if there is no PSB after the middle.
inline trace::TraceBundle halves_of(const trace::TraceBundle& bundle) {
  trace::TraceBundle halves = bundle;
  const trace::Stream& whole = bundle.streams.front();
  const std::size_t size = whole.data.size();
  packet::PacketDecoder decoder(whole.data.bytes());
  const std::size_t cut = decoder.sync_forward(size / 2) == base::Status::OK
                              ? static_cast<std::size_t>(decoder.position())
                              : size;
  halves.streams = {whole, whole};
  halves.streams[0].data = whole.data.slice(0, cut);
  halves.streams[1].data = whole.data.slice(cut, size - cut);
  return halves;
}

}  // namespace ptkit::bench
