#include "columns/ahead_source.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <system_error>

#include "packet/decoder.h"

namespace ptkit::columns {
namespace {

constexpr std::size_t kLargestSegment = std::size_t{1} << 20U;
// A segment is worth a thread's while from here on, where it ends with rows and where it ends with counts.
constexpr std::size_t kSmallestOfRows = std::size_t{32} << 10U;
constexpr std::size_t kSmallestOfCounts = AheadSource::kSmallestSegment;
// Memory of rows that a segment should take, so that those in flight stay in the caches; that it has at
// first; and above which it ends at the next PSB+.
constexpr std::size_t kGoodBytes = std::size_t{2} << 20U;
constexpr std::size_t kBlockBytes = kGoodBytes * 4;
constexpr std::size_t kMostBytes = kGoodBytes * 8;
// Rows of a part that may come to stand before a segment's.
constexpr std::size_t kMostFront = std::size_t{1} << 17U;
constexpr std::size_t kSliceRows = std::size_t{1} << 18U;
constexpr std::size_t kSlicePackets = 8192;
constexpr std::size_t kSliceTimes = std::size_t{1} << 16U;
// Segments that are decoded or wait for their turn, for each thread.
constexpr std::size_t kAhead = 2;
// Segments of a short stream, for each thread: so that all of them end at about the same time.
constexpr std::size_t kShares = 6;
// So many wrong assumptions one behind the other: the next ones are likely to be wrong as well.
constexpr unsigned kMisses = 3;
constexpr unsigned kMostMisses = 6;
constexpr auto kPatience = std::chrono::milliseconds(5);

}  // namespace

AheadSource::Job::Job(const AheadSource& owner, std::size_t job_number, const flow::Checkpoint& likely)
    : number(job_number),
      sink(owner.input_.request, owner.stop_),
      decoder(owner.input_.make, owner.input_.stream, sink, owner.psbs_[job_number],
              owner.psbs_[job_number + 1], likely) {
  sink.begin_stream(owner.input_.index, owner.input_.stream, nullptr);
  if (owner.input_.times) sink.defer_times(owner.sink_);
  const Request& request = owner.input_.request;
  if (request.table == TableId::edges) return;
  const std::size_t front = owner.input_.part <= kMostFront ? owner.input_.part : 0;
  const std::size_t row = std::max<std::size_t>(row_bytes(request.table, sink.main()->mask()), 1);
  const std::size_t rows = front + kBlockBytes / row;
  sink.use_memory(take_part(*owner.input_.memory, request.table, sink.main()->mask(), rows), front);
}

AheadSource::AheadSource(Input input, RowSink& sink) : input_(std::move(input)), sink_(sink) {
  if (input_.segment != 0) {
    segment_ = input_.segment;
  } else if (input_.request.table == TableId::edges) {
    segment_ = std::clamp(share(), smallest(), kLargestSegment / 4);
  } else {
    segment_ = smallest();  // until the first one has shown how many rows there are
  }
}

std::size_t AheadSource::smallest() const noexcept {
  return input_.request.table == TableId::edges ? kSmallestOfCounts : kSmallestOfRows;
}

std::size_t AheadSource::share() const noexcept {
  return input_.stream.data.size() / (input_.threads * kShares);
}

AheadSource::~AheadSource() {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
  }
  room_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void AheadSource::start() {
  started_ = true;
  decoder_ = input_.make(sink_, nullptr, false);
  const std::uint64_t first = psb(1);
  if (first == flow::kNoPsb) return;
  decoder_->stop_behind_psb_after(first);
  likely_ = decoder_->checkpoint();  // whose stream it is, and what its configuration tells
  likely_.events.tip_order.assume_in_order();
  start_threads();
}

void AheadSource::start_threads() {
  input_.threads = std::clamp<std::uint64_t>(input_.room / (kAhead * kMostBytes), 1, input_.threads);
  most_bytes_ = std::max<std::uint64_t>(kMostBytes, input_.room / (kAhead * input_.threads));
  try {
    for (std::size_t i = 1; i < input_.threads; ++i) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error&) {
    return;  // no more of them, or no address space for a stack: those that there are decode all
  }
}

// Where segment `number` begins to learn: at a PSB about one segment behind the one before. With the lock
// held once threads run.
std::uint64_t AheadSource::psb(std::size_t number) {
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

// The next segment that nobody works on, if there is one and it is not too far ahead. With the lock held.
AheadSource::Job* AheadSource::claim(std::size_t threads_ahead) {
  next_claim_ = std::max(next_claim_, turn_);
  if (stop_ || next_claim_ >= turn_ + threads_ahead * kAhead || psb(next_claim_) == flow::kNoPsb)
    return nullptr;
  (void)psb(next_claim_ + 1);
  jobs_.emplace_back(*this, next_claim_, likely_);
  ++next_claim_;
  return &jobs_.back();
}

void AheadSource::work() {
  for (;;) {
    Job* job = nullptr;
    try {
      std::unique_lock lock(mutex_);
      room_.wait(lock, [&] { return stop_ || (job = claim(input_.threads)) != nullptr; });
    } catch (const std::bad_alloc&) {
      return;  // those who have memory go on
    }
    if (job == nullptr) return;
    work_on(*job, false);
  }
}

// Decodes a segment, or a slice of it.
void AheadSource::work_on(Job& job, bool once) {
  bool more = true;
  try {
    while (more && !stop_) {
      job.sink.begin_slice(job.sink.main()->rows() + kSliceRows, kSlicePackets);
      more = job.decoder.run();
      if (job.sink.out_of_memory()) more = false;
      if (job.sink.bytes() > kMostBytes) job.decoder.stop_soon();
      // The next PSB+ is too far behind: the segment is decoded in its turn, straight into the sink.
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

void AheadSource::finish(Job& job) {
  {
    const std::scoped_lock lock(mutex_);
    adapt(job);
    job.done = true;
  }
  done_.notify_all();
}

// Segments that follow are as large as memory for their rows allows, going by this one.
void AheadSource::adapt(Job& job) {
  if (input_.segment != 0 || !job.decoder.result().usable) return;
  const std::uint64_t begin = job.decoder.result().begin.packets.position;
  const std::uint64_t end = job.decoder.result().at_stream_end ? input_.stream.data.size()
                                                               : job.decoder.result().end.packets.position;
  const double grown = static_cast<double>(end - begin) * kGoodBytes /
                       static_cast<double>(std::max<std::size_t>(job.sink.bytes(), 1));
  const std::size_t most = std::clamp(share(), smallest(), kLargestSegment);
  segment_ = std::max(smallest(), static_cast<std::size_t>(std::min(grown, static_cast<double>(most))));
}

AheadSource::Job* AheadSource::find(std::size_t number) noexcept {
  for (Job& job : jobs_) {
    if (job.number == number) return &job;
  }
  return nullptr;
}

void AheadSource::drop(Job* job) {
  std::list<Job> dropped;  // freed without the lock
  const std::scoped_lock lock(mutex_);
  for (auto at = jobs_.begin(); at != jobs_.end(); ++at) {
    if (&*at != job) continue;
    dropped.splice(dropped.begin(), jobs_, at);
    return;
  }
}

bool AheadSource::run() {
  if (!started_) start();
  if (taking_ != nullptr) return take();
  if (!at_stop_) return decode();
  return join();
}

// In its turn, straight into the sink.
bool AheadSource::decode() {
  sink_.settle();
  if (decoder_->run()) return true;
  if (!decoder_->stopped()) return false;
  real_ = decoder_->checkpoint();
  at_stop_ = true;
  return true;
}

// Is the next segment there, and right?
bool AheadSource::join() {
  Job* job = nullptr;
  bool done = false;
  {
    const std::scoped_lock lock(mutex_);
    job = find(next_);
    done = job != nullptr && job->done;
    if (job == nullptr) next_claim_ = std::max(next_claim_, next_ + 1);  // it is decoded here
  }
  if (job == nullptr) {
    go_on();
  } else if (!done) {
    wait_or_help();
  } else if (is_right(*job)) {
    misses_ = 0;
    ++figures_.taken;
    decoder_.reset();
    job->sink.count_on_from(sink_);
    taking_ = job;
    timing_ = true;
  } else {
    misses_ = std::min(misses_ + 1, kMostMisses);
    ++figures_.again;
    drop(job);
    go_on();
  }
  return true;
}

bool AheadSource::is_right(const Job& job) const noexcept {
  const flow::Segment& segment = job.decoder.result();
  return !job.sink.out_of_memory() && segment.usable &&
         flow::equivalent(segment.begin, real_, segment.relied);
}

// Decodes segment `next_` in its turn.
void AheadSource::go_on() {
  const std::uint64_t stop = begin_turn(next_ + 1);
  decode_up_to(stop);
}

// The turn of segment `number` comes. Returns behind which PSB it begins.
std::uint64_t AheadSource::begin_turn(std::size_t number) {
  next_ = number;
  std::uint64_t begin = flow::kNoPsb;
  {
    const std::scoped_lock lock(mutex_);
    turn_ = next_;
    likely_ = real_;
    if (misses_ >= kMisses) next_claim_ = std::max(next_claim_, next_ + (std::size_t{1} << misses_));
    begin = psb(next_);
  }
  room_.notify_all();
  return begin;
}

void AheadSource::decode_up_to(std::uint64_t psb) {
  if (decoder_ == nullptr) decoder_ = input_.make(sink_, &real_, false);
  at_stop_ = false;
  if (psb != flow::kNoPsb) decoder_->stop_behind_psb_after(psb);
}

// Takes rows of a segment, as many as there is room for.
bool AheadSource::take() {
  if (timing_) {
    timing_ = sink_.tell_times(taking_->sink, kSliceTimes);
    return true;
  }
  if (!sink_.take_rows(taking_->sink) || taking_->sink.main()->rows() != 0) return true;
  if (!sink_.append_rest(taking_->sink)) return true;
  Job* job = taking_;
  taking_ = nullptr;
  const bool ended = job->decoder.result().at_stream_end;
  flow::Checkpoint end = job->decoder.result().end;
  drop(job);
  if (ended) return false;
  flow::complete(end, real_);
  real_ = end;
  const std::uint64_t begin = begin_turn(next_ + 1);
  // A segment of too many rows ended early.
  if (begin != flow::kNoPsb && real_.packets.position <= begin) decode_up_to(begin);
  return true;
}

// The next segment is being decoded: this thread decodes another one in the meantime, if there is any.
void AheadSource::wait_or_help() {
  {
    std::unique_lock lock(mutex_);
    if (own_ == nullptr) own_ = claim(input_.threads);
    if (own_ == nullptr) {
      done_.wait_for(lock, kPatience, [this] { return find(next_)->done; });
      return;
    }
  }
  work_on(*own_, true);
  const std::scoped_lock lock(mutex_);
  if (own_->done) own_ = nullptr;
}

std::uint64_t AheadSource::position() const noexcept {
  if (taking_ != nullptr || decoder_ == nullptr) return real_.packets.position;
  return decoder_->position();
}

}  // namespace ptkit::columns
