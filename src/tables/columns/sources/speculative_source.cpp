#include "tables/columns/sources/speculative_source.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <system_error>

#include "packet/decoder.h"

namespace ptkit::tables::columns {
namespace {

constexpr std::size_t kLargestSegment = std::size_t{1} << 20U;
// Smallest segment that is worth a thread, for rows and for counts.
constexpr std::size_t kSmallestOfRows = std::size_t{32} << 10U;
constexpr std::size_t kSmallestOfCounts = SpeculativeSource::kSmallestSegment;
// Memory for the rows of a segment: the size that keeps segments in the caches, and the limit above which the
// segment ends at the next PSB+. Its block has room for as many: rows that outgrow a block are copied to
// fresh pages.
constexpr std::size_t kGoodBytes = std::size_t{2} << 20U;
constexpr std::size_t kMostBytes = kGoodBytes * 8;
// Limit for the rows of a part that may be put before a segment's rows.
constexpr std::size_t kMostFront = std::size_t{1} << 17U;
constexpr std::size_t kSliceTimes = std::size_t{1} << 16U;
// Segments for each thread that are being decoded or wait for their turn.
constexpr std::size_t kSegmentsPerThread = 2;
// Segments of a short stream for each thread, so that all threads end at about the same time.
constexpr std::size_t kShares = 6;
// After this many mispredictions in succession, the next ones are likely as well.
constexpr unsigned kMispredictions = 3;
constexpr unsigned kMostMispredictions = 6;
constexpr auto kPatience = std::chrono::milliseconds(5);

}  // namespace

SpeculativeSource::Job::Job(const SpeculativeSource& owner, std::size_t job_number,
                            const flow::FlowState& predicted, std::unique_ptr<time::TimeTrack> track)
    : number(job_number),
      sink(owner.input_.request, owner.stop_),
      decoder(owner.input_.make, owner.input_.stream, sink, owner.psbs_[job_number],
              owner.psbs_[job_number + 1], predicted, std::move(track)) {
  sink.set_go_on(owner.sink_.go_on());
  sink.begin_stream(owner.input_.index, owner.input_.stream, nullptr, true);
  if (owner.input_.times) sink.defer_times(owner.sink_);
  const Request& request = owner.input_.request;
  if (request.table == TableId::edges) return;
  const std::size_t front = owner.input_.part <= kMostFront ? owner.input_.part : 0;
  const std::size_t row = std::max<std::size_t>(row_bytes(request.table, sink.main()->mask()), 1);
  const std::size_t rows = front + kMostBytes / row;
  sink.use_memory(take_part(*MemoryPool::of_process(), request.table, sink.main()->mask(), rows), front);
}

SpeculativeSource::SpeculativeSource(Input input, RowSink& sink) : input_(std::move(input)), sink_(sink) {
  if (input_.segment != 0) {
    segment_ = input_.segment;
  } else if (input_.request.table == TableId::edges) {
    segment_ = std::clamp(share(), smallest(), kLargestSegment / 4);
  } else {
    segment_ = smallest();  // until the first segment shows the number of rows
  }
}

std::size_t SpeculativeSource::smallest() const noexcept {
  return input_.request.table == TableId::edges ? kSmallestOfCounts : kSmallestOfRows;
}

std::size_t SpeculativeSource::share() const noexcept {
  return input_.stream.data.size() / (input_.threads * kShares);
}

SpeculativeSource::~SpeculativeSource() {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
  }
  room_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void SpeculativeSource::start() {
  started_ = true;
  if (input_.track != nullptr) track_ = std::make_unique<time::TimeTrack>(input_.track->begin_at(0, {}));
  decoder_ = input_.make(sink_, track_.get(), nullptr, false);
  const std::uint64_t first = psb(1);
  if (first == flow::kNoPsb) return;
  decoder_->stop_after_psb_above(first);
  predicted_ =
      // the predicted state at the start: the stream's CPU and thread, its configuration
      decoder_->checkpoint();
  predicted_.events.tip_order.expect_in_order();
  start_threads();
}

void SpeculativeSource::start_threads() {
  input_.threads =
      std::clamp<std::uint64_t>(input_.room / (kSegmentsPerThread * kMostBytes), 1, input_.threads);
  most_bytes_ = std::max<std::uint64_t>(kMostBytes, input_.room / (kSegmentsPerThread * input_.threads));
  try {
    for (std::size_t i = 1; i < input_.threads; ++i) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error&) {
    return;  // no more threads, or no address space for a stack: the started threads decode everything
  }
}

// PSB where the warm-up of segment `number` begins, about one segment after the previous one. Needs the lock
// once threads run.
std::uint64_t SpeculativeSource::psb(std::size_t number) {
  const base::Bytes bytes = input_.stream.data.bytes();
  while (psbs_.size() <= number) {
    std::uint64_t next = flow::kNoPsb;
    if (psbs_.back() != flow::kNoPsb && psbs_.back() + segment_ * 2 <= bytes.size()) {
      next = packet::find_psb(bytes, psbs_.back() + segment_);
      if (next >= bytes.size()) next = flow::kNoPsb;
    }
    psbs_.push_back(next);
  }
  return psbs_[number];
}

// Returns the next segment that no thread decodes; null if there is none, or if it is too far ahead. Needs
// the lock.
SpeculativeSource::Job* SpeculativeSource::claim(std::size_t threads) {
  next_claim_ = std::max(next_claim_, turn_);
  if (stop_ || next_claim_ >= turn_ + threads * kSegmentsPerThread || psb(next_claim_) == flow::kNoPsb)
    return nullptr;
  (void)psb(next_claim_ + 1);
  std::unique_ptr<time::TimeTrack> track;
  if (input_.track != nullptr)
    track = std::make_unique<time::TimeTrack>(input_.track->begin_at(psb(next_claim_), carried_));
  jobs_.emplace_back(*this, next_claim_, predicted_, std::move(track));
  ++next_claim_;
  return &jobs_.back();
}

void SpeculativeSource::work() {
  for (;;) {
    Job* job = nullptr;
    try {
      std::unique_lock lock(mutex_);
      room_.wait(lock, [&] { return stop_ || (job = claim(input_.threads)) != nullptr; });
    } catch (const std::bad_alloc&) {
      return;  // other threads continue
    }
    if (job == nullptr) return;
    work_on(*job, false);
  }
}

// Decodes a segment, or a slice of it if `once`.
void SpeculativeSource::work_on(Job& job, bool once) {
  bool more = true;
  try {
    while (more && !stop_) {
      job.sink.begin_slice(job.sink.main()->rows() + kSliceRows, kSlicePackets);
      more = job.decoder.run();
      if (job.sink.out_of_memory()) more = false;
      if (job.sink.bytes() > kMostBytes) job.decoder.stop_at_next_psb();
      // The next PSB+ is too far away: the segment is decoded again in turn, directly into the sink.
      if (job.sink.bytes() > most_bytes_) {
        job.sink.run_out_of_memory();
        more = false;
      }
      if (once && more) return;
    }
  } catch (const std::bad_alloc&) {
    job.sink.run_out_of_memory();
  }
  finish(job);
}

void SpeculativeSource::finish(Job& job) {
  {
    const std::scoped_lock lock(mutex_);
    adapt(job);
    job.done = true;
  }
  done_.notify_all();
}

// Adapts the size of later segments to the memory for their rows, by this segment.
void SpeculativeSource::adapt(Job& job) {
  if (input_.segment != 0 || !job.decoder.result().usable) return;
  const std::uint64_t begin = job.decoder.result().begin.packets.position;
  const std::uint64_t end = job.decoder.result().at_stream_end ? input_.stream.data.size()
                                                               : job.decoder.result().end.packets.position;
  const double grown = static_cast<double>(end - begin) * kGoodBytes /
                       static_cast<double>(std::max<std::size_t>(job.sink.bytes(), 1));
  const std::size_t most = std::clamp(share(), smallest(), kLargestSegment);
  segment_ = std::max(smallest(), static_cast<std::size_t>(std::min(grown, static_cast<double>(most))));
}

SpeculativeSource::Job* SpeculativeSource::find(std::size_t number) noexcept {
  for (Job& job : jobs_) {
    if (job.number == number) return &job;
  }
  return nullptr;
}

void SpeculativeSource::drop(Job* job) {
  std::list<Job> dropped;  // freed without the lock
  const std::scoped_lock lock(mutex_);
  for (auto at = jobs_.begin(); at != jobs_.end(); ++at) {
    if (&*at != job) continue;
    dropped.splice(dropped.begin(), jobs_, at);
    return;
  }
}

bool SpeculativeSource::run() {
  if (!started_) start();
  if (taking_ != nullptr) return take();
  if (!at_stop_) return decode();
  return join();
}

// Decodes in turn, directly into the sink.
bool SpeculativeSource::decode() {
  sink_.attach_part();
  if (decoder_->run()) return true;
  if (!decoder_->stopped()) return false;
  actual_ = decoder_->checkpoint();
  at_stop_ = true;
  return true;
}

// Checks whether the next segment is done and its prediction valid.
bool SpeculativeSource::join() {
  Job* job = nullptr;
  bool done = false;
  {
    const std::scoped_lock lock(mutex_);
    job = find(next_);
    done = job != nullptr && job->done;
    if (job == nullptr) next_claim_ = std::max(next_claim_, next_ + 1);  // it is decoded here
  }
  if (job == nullptr) {
    decode_next();
  } else if (!done) {
    wait_or_decode();
  } else if (is_valid(*job)) {
    mispredictions_ = 0;
    ++figures_.taken;
    decoder_.reset();
    job->sink.continue_counts_from(sink_);
    taking_ = job;
    filling_times_ = true;
  } else {
    mispredictions_ = std::min(mispredictions_ + 1, kMostMispredictions);
    ++figures_.again;
    drop(job);
    decode_next();
  }
  return true;
}

bool SpeculativeSource::is_valid(const Job& job) const noexcept {
  return !job.sink.out_of_memory() && flow::is_valid(job.decoder.result(), actual_, track_.get());
}

// Decodes segment `next_` in turn.
void SpeculativeSource::decode_next() {
  const std::uint64_t stop = begin_turn(next_ + 1);
  decode_up_to(stop);
}

// Starts the turn of segment `number`. Returns the PSB after which it begins.
std::uint64_t SpeculativeSource::begin_turn(std::size_t number) {
  next_ = number;
  std::uint64_t begin = flow::kNoPsb;
  {
    const std::scoped_lock lock(mutex_);
    turn_ = next_;
    predicted_ = actual_;
    if (track_ != nullptr) carried_ = track_->carried();
    if (mispredictions_ >= kMispredictions)
      next_claim_ = std::max(next_claim_, next_ + (std::size_t{1} << mispredictions_));
    begin = psb(next_);
  }
  room_.notify_all();
  return begin;
}

void SpeculativeSource::decode_up_to(std::uint64_t psb) {
  if (decoder_ == nullptr) decoder_ = input_.make(sink_, track_.get(), &actual_, false);
  at_stop_ = false;
  if (psb != flow::kNoPsb) decoder_->stop_after_psb_above(psb);
}

// Moves rows of a segment, as many as there is room for.
bool SpeculativeSource::take() {
  if (filling_times_) {
    filling_times_ = sink_.fill_times(taking_->sink, kSliceTimes);
    return true;
  }
  if (!sink_.take_rows(taking_->sink) || taking_->sink.main()->rows() != 0) return true;
  if (!sink_.append_rest(taking_->sink)) return true;
  Job* job = taking_;
  taking_ = nullptr;
  const bool ended = job->decoder.result().at_stream_end;
  flow::FlowState end = job->decoder.result().end;
  if (track_ != nullptr) track_ = job->decoder.take_track();
  drop(job);
  if (ended) return false;
  flow::complete(end, actual_);
  actual_ = end;
  const std::uint64_t begin = begin_turn(next_ + 1);
  // A segment of too many rows ended early.
  if (begin != flow::kNoPsb && actual_.packets.position <= begin) decode_up_to(begin);
  return true;
}

// Another thread decodes the next segment: decodes a later one meanwhile, if there is any.
void SpeculativeSource::wait_or_decode() {
  {
    std::unique_lock lock(mutex_);
    if (waiting_job_ == nullptr) waiting_job_ = claim(input_.threads);
    if (waiting_job_ == nullptr) {
      done_.wait_for(lock, kPatience, [this] { return find(next_)->done; });
      return;
    }
  }
  work_on(*waiting_job_, true);
  const std::scoped_lock lock(mutex_);
  if (waiting_job_->done) waiting_job_ = nullptr;
}

std::uint64_t SpeculativeSource::position() const noexcept {
  if (taking_ != nullptr || decoder_ == nullptr) return actual_.packets.position;
  return decoder_->position();
}

}  // namespace ptkit::tables::columns
