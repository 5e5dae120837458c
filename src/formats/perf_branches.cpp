#include "formats/perf_branches.h"

#include <algorithm>
#include <set>

#include "formats/branch_records.h"

namespace ptkit::formats::perf {

namespace {

using trace::BranchRecord;

constexpr std::uint32_t kTypeHardware = 0;
constexpr std::uint64_t kBranchInstructions = 4;
constexpr unsigned kFrequency = 10;  // Attr::flag
// PERF_SAMPLE_BRANCH_*
constexpr std::uint64_t kAny = 1U << 3U;
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

// Goes through what one CPU's threads did, in the order of time.
class Threads {
 public:
  Threads(const std::vector<Running>& running, std::int64_t cpu) {
    for (const Running& one : running) {
      if (one.cpu == cpu) running_.push_back(&one);
    }
  }
  // The only thread that ran since the time that was asked for before; nullptr: none is known, or several
  // ran.
  [[nodiscard]] const Running* only_one_until(std::uint64_t tsc) {
    std::set<std::int64_t> tids;
    const Running* found = inside_;
    if (inside_ != nullptr) tids.insert(inside_->tid);
    for (; next_ != running_.size() && running_[next_]->tsc <= tsc; ++next_) {
      const Running* const one = running_[next_];
      inside_ = one->out || one->tid <= 0 ? nullptr : one;
      if (inside_ == nullptr) continue;
      tids.insert(one->tid);
      found = one;
    }
    return tids.size() == 1 ? found : nullptr;
  }

 private:
  std::vector<const Running*> running_;
  std::size_t next_ = 0;
  const Running* inside_ = nullptr;
};

// Makes records of Branch Trace Store those of a bundle, part by part.
class Store {
 public:
  explicit Store(base::Bytes bytes) : bytes_(bytes) {}

  void take_until(std::uint64_t offset) {
    const auto end = static_cast<std::size_t>(std::min<std::uint64_t>(offset, bytes_.size()));
    if (end <= at_) return;
    const std::size_t had = records_.size();
    append_ds_records(bytes_.subspan(at_, end - at_), DsLayout::BITS64, records_);
    at_ = end;
    // Where a buffer ends, the kernel fills with zeros what no record fits into.
    const auto added = records_.begin() + static_cast<std::ptrdiff_t>(had);
    records_.erase(std::remove_if(added, records_.end(),
                                  [](const BranchRecord& one) { return one.from_ip == 0 && one.to_ip == 0; }),
                   records_.end());
    if (!first_ || records_.size() == had) return;
    records_[had].flags |= trace::RECORD_FIRST;
    first_ = false;
  }
  void lose(trace::KnownLoss loss) {
    take_until(loss.offset);
    loss.offset = place_of(records_);
    losses.push_back(loss);
    first_ = true;
  }
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
  const std::size_t had = queue.records.size();
  if (is_branch) {
    add_branch(sample, queue);
  } else {
    add_stack(attr, sample, queue);
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
  const std::size_t had = queue.records.size();
  append_branch_stack(sample.branches, sample.who.time, queue.records);
  if ((attr.branch_type & kAny) != 0) return;
  for (std::size_t i = had; i < queue.records.size(); ++i) queue.records[i].flags |= trace::RECORD_FIRST;
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

void Branches::lost() {
  for (auto& [owner, queue] : queues_) {
    if (queue.first) continue;
    queue.first = true;
    queue.losses.push_back({place_of(queue.records), base::Status::BUFFER_FULL, 0});
  }
}

std::vector<BranchStream> Branches::make(const trace::Clock& clock) {
  std::vector<BranchStream> out;
  for (auto& [owner, queue] : queues_) {
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

BranchStream from_store(const AuxStream& aux, const std::vector<Running>& running,
                        const trace::Clock& clock) {
  BranchStream out{named(aux.stream.cpu, aux.stream.tid), {}};
  Threads threads(running, aux.stream.cpu);
  Store store(aux.stream.data.bytes());
  auto loss = aux.stream.losses.begin();
  const auto lose_until = [&](std::uint64_t offset) {
    for (; loss != aux.stream.losses.end() && loss->offset <= offset; ++loss) store.lose(*loss);
  };
  for (const Flush& flush : aux.flushes) {
    const std::uint64_t from = place_of(store.records());
    lose_until(flush.offset);
    store.take_until(flush.offset);
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
  lose_until(trace::kTscMax);
  store.take_until(aux.stream.data.size());
  settle_prediction(store.records());
  out.stream.losses = std::move(store.losses);
  out.stream.data = to_buffer(std::move(store.records()));
  if (aux.stream.cpu == trace::kNoId) out.owners.clear();  // it is one thread's
  return out;
}

}  // namespace ptkit::formats::perf
