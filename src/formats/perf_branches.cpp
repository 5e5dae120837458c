#include "formats/perf_branches.h"

#include <algorithm>

namespace ptkit::formats::perf {

namespace {

using trace::BranchRecord;

constexpr std::uint32_t kTypeHardware = 0;
constexpr std::uint64_t kBranchInstructions = 4;
constexpr unsigned kFrequency = 10;  // Attr::flag
// PERF_SAMPLE_BRANCH_*
constexpr std::uint64_t kCallStack = 1U << 11U;

// The kernel gives each branch if it is asked for a sample of each: that is Branch Trace Store.
bool each_is_a_branch(const Attr& attr) {
  return attr.type == kTypeHardware && attr.config == kBranchInstructions && attr.period == 1 &&
         !attr.flag(kFrequency) && attr.has(SAMPLE_IP) && attr.has(SAMPLE_ADDR);
}

trace::Stream named(std::int64_t cpu, std::int64_t tid) {
  trace::Stream stream = stream_named(cpu, tid);
  stream.kind = trace::StreamKind::BRANCH_RECORDS;
  return stream;
}

std::uint64_t place_of(const std::vector<BranchRecord>& records) {
  return records.size() * sizeof(BranchRecord);
}

// Who ran when on one CPU, for any number of buffers of it: each asks from the beginning, and none may cost
// as much as all records (capture/perf_ran.h answers the same for one buffer, as records come). Places count
// from 1; 0: there is none.
class Runs {
 public:
  // In the order of time.
  void add(const Running& one) {
    const bool inside = !one.out && one.tid > 0;
    if (inside && last_in_ != 0 && all_[last_in_ - 1].running.tid != one.tid) other_in_ = last_in_;
    if (inside) last_in_ = all_.size() + 1;
    all_.push_back({one, last_in_, other_in_});
  }
  // How many there are up to a time.
  [[nodiscard]] std::size_t count_until(std::uint64_t tsc) const noexcept {
    const auto end =
        std::ranges::upper_bound(all_, tsc, {}, [](const Entry& one) { return one.running.tsc; });
    return static_cast<std::size_t>(end - all_.begin());
  }
  // The only thread that ran from one place to another; nullptr: none is known, or several ran.
  [[nodiscard]] const Running* only_one(std::size_t first, std::size_t last) const noexcept {
    if (last == 0) return nullptr;
    const Entry& end = all_[last - 1];
    const bool known = end.last_in != 0 && end.last_in >= first;
    return known && (end.other_in == 0 || end.other_in < first) ? &all_[end.last_in - 1].running : nullptr;
  }

 private:
  struct Entry {
    Running running;
    std::size_t last_in = 0;   // the last one up to here that came in
    std::size_t other_in = 0;  // the last one of another thread
  };
  std::vector<Entry> all_;
  std::size_t last_in_ = 0;
  std::size_t other_in_ = 0;
};

// Goes through what one CPU's threads did, in the order of time.
class Threads {
 public:
  explicit Threads(const Runs& runs) : runs_(runs) {}

  // The only thread that ran since the time that was asked for before; nullptr: none is known, or several
  // ran.
  [[nodiscard]] const Running* only_one_until(std::uint64_t tsc) {
    const std::size_t before = at_;
    at_ = std::max(at_, runs_.count_until(tsc));
    return runs_.only_one(before, at_);
  }

 private:
  const Runs& runs_;
  std::size_t at_ = 0;
};

// Makes records of Branch Trace Store those of a bundle, part by part.
class Store {
 public:
  explicit Store(base::Bytes bytes) : bytes_(bytes) { records_.reserve(bytes.size() / kStoreRecordBytes); }

  void take_until(std::uint64_t offset) {
    const auto end = static_cast<std::size_t>(std::min<std::uint64_t>(offset, bytes_.size()));
    if (end <= at_) return;
    const std::size_t had = records_.size();
    append_stored(bytes_.subspan(at_, end - at_), first_, records_);
    at_ = end;
    first_ = first_ && records_.size() == had;
  }
  void lose(trace::KnownLoss loss) {
    take_until(loss.offset);
    loss.offset = place_of(records_);
    losses.push_back(loss);
    begin_anew();
  }
  // What comes next does not go on where the last record led.
  void begin_anew() noexcept { first_ = true; }
  [[nodiscard]] std::vector<BranchRecord>& records() noexcept { return records_; }

  std::vector<trace::KnownLoss> losses;

 private:
  base::Bytes bytes_;
  std::size_t at_ = 0;
  std::vector<BranchRecord> records_;
  bool first_ = true;
};

}  // namespace

Branches::Queue& Branches::queue_of(const Trailer& who) {
  return queues_[{who.cpu, who.cpu == trace::kNoId ? who.tid : trace::kNoId}];
}

bool Branches::take(const Attr& attr, const Sample& sample) {
  const bool is_branch = each_is_a_branch(attr) && sample.address != 0;
  if (!is_branch && (sample.branches.empty() || (attr.branch_type & kCallStack) != 0)) return false;
  Queue& queue = queue_of(sample.who);
  note_loss(queue);
  const std::size_t had = queue.records.size();
  if (is_branch) {
    add_branch(sample, queue);
  } else {
    add_stack(attr, sample, queue);
  }
  for (std::size_t i = had; sample.is_32_bit && i < queue.records.size(); ++i) {
    if (queue.records[i].to_ip < kEndOf32BitCode) queue.records[i].flags |= trace::RECORD_CODE32;
  }
  const Trailer& who = sample.who;
  const bool same =
      !queue.owners.empty() && queue.owners.back().tid == who.tid && queue.owners.back().pid == who.pid;
  if (!same && queue.records.size() != had) {
    queue.owners.push_back(
        {.tsc = who.time, .pid = who.pid, .tid = who.tid, .offset = had * sizeof(BranchRecord)});
  }
  return true;
}

// Stacks may repeat branches of the one before: nothing in them tells how many.
void Branches::add_stack(const Attr& attr, const Sample& sample, Queue& queue) {
  append_branch_stack(sample.branches, sample.who.time, has_every_branch(attr.branch_type), queue.records);
}

// The kernel takes many out of the processor's buffer at once, and gives all of them the same time.
void Branches::add_branch(const Sample& sample, Queue& queue) {
  BranchRecord record;
  record.from_ip = sample.ip;
  record.to_ip = sample.address;
  record.tsc = sample.who.time;
  if (queue.first) record.flags |= trace::RECORD_FIRST;
  queue.first = false;
  if (!queue.records.empty() && queue.records.back().tsc == record.tsc) queue.records.back().tsc = 0;
  queue.records.push_back(record);
}

void Branches::note_loss(Queue& queue) const {
  if (queue.times_lost != times_lost_ && !queue.first) {
    queue.first = true;
    queue.losses.push_back({place_of(queue.records), base::Status::BUFFER_FULL, 0});
  }
  queue.times_lost = times_lost_;
}

std::vector<BranchStream> Branches::make(const trace::Clock& clock) {
  std::vector<BranchStream> out;
  for (auto& [owner, queue] : queues_) {
    note_loss(queue);
    for (BranchRecord& record : queue.records) {
      if (record.tsc != 0) record.tsc = tsc_of(clock, record.tsc);
    }
    for (Owner& one : queue.owners) one.tsc = tsc_of(clock, one.tsc);
    trace::Stream stream = named(owner.first, owner.second);
    stream.losses = std::move(queue.losses);
    stream.data = to_buffer(std::move(queue.records));
    out.push_back({std::move(stream), std::move(queue.owners)});
  }
  queues_.clear();
  return out;
}

namespace {

BranchStream from_store(const AuxStream& aux, const Runs& runs, const trace::Clock& clock, bool kernel) {
  BranchStream out{named(aux.stream.cpu, aux.stream.tid), {}};
  Threads threads(runs);
  Store store(aux.stream.data.bytes());
  auto loss = aux.stream.losses.begin();
  const auto lose_until = [&](std::uint64_t offset) {
    for (; loss != aux.stream.losses.end() && loss->offset <= offset; ++loss) store.lose(*loss);
  };
  for (const Flush& flush : aux.flushes) {
    const std::uint64_t from = place_of(store.records());
    lose_until(flush.offset);
    store.take_until(flush.offset);
    // What empties the buffer is kernel code, and not stored; user code goes on as if nothing had been.
    if (kernel) store.begin_anew();
    const std::uint64_t tsc = tsc_of(clock, flush.ns);
    const Running* const ran = threads.only_one_until(tsc);
    Owner owner{.tsc = tsc, .pid = flush.pid, .tid = flush.tid, .offset = from};
    if (!aux.of_task) {
      owner.pid = ran != nullptr ? ran->pid : trace::kNoId;
      owner.tid = ran != nullptr ? ran->tid : trace::kNoId;
    }
    if (place_of(store.records()) == from) continue;
    store.records().back().tsc = tsc;
    out.owners.push_back(owner);
  }
  for (const std::uint64_t begin : aux.copies) {
    lose_until(begin);
    store.take_until(begin);
    store.begin_anew();
  }
  lose_until(trace::kTscMax);
  store.take_until(aux.stream.data.size());
  settle_prediction(store.records());
  out.stream.losses = std::move(store.losses);
  out.stream.data = to_buffer(std::move(store.records()));
  if (aux.stream.cpu == trace::kNoId) out.owners.clear();  // it is one thread's
  return out;
}

}  // namespace

std::vector<BranchStream> from_stores(const std::vector<AuxStream>& stores,
                                      const std::vector<Running>& running, const trace::Clock& clock,
                                      bool kernel) {
  std::map<std::int64_t, Runs> runs;
  for (const Running& one : running) runs[one.cpu].add(one);
  std::vector<BranchStream> out;
  out.reserve(stores.size());
  for (const AuxStream& store : stores)
    out.push_back(from_store(store, runs[store.stream.cpu], clock, kernel));
  return out;
}

}  // namespace ptkit::formats::perf
