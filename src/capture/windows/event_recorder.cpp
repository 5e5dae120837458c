#include "capture/windows/event_recorder.h"

#include <utility>

#include "capture/windows/descriptions.h"

namespace ptkit::capture {

namespace {

constexpr const char* kBranchesWithoutThreads =
    "Branches have no thread: Windows calls no driver at a context switch. Their process is that of the "
    "marks before and after them, and branches of all processes are recorded.";
constexpr const char* kBranchesOfSeveralThreads =
    "Branches have no time: they have a thread where ETW reports no other one between two hand-overs of the "
    "driver. Branches of all processes are recorded.";
constexpr const char* kThreadsMixed =
    "Threads are not separated: Windows calls no driver at a context switch. Branches of all threads of a "
    "processor are in one stream.";

}  // namespace

EventRecorder::EventRecorder(EventSession& session, WindowsImages& images, Options options)
    : session_(&session),
      images_(&images),
      options_(std::move(options)),
      switches_(options_.cpus, options_.pid, options_.kernel,
                [&images](std::int64_t pid) { return images.space_of(pid); }),
      refusal_(options_.left_out) {
  if (!refusal_.empty()) return;
  if (const auto failure = session_->start()) refusal_ = failure->detail;
}

void EventRecorder::add(const WindowsRecord& record) {
  if (!begin_) begin_ = record.tsc;
  if (record.kind == WindowsRecord::Kind::BEGIN && record.tid != 0)
    switches_.add_thread(record.pid, record.tid, record.tsc);
}

// The clocks that ETW has besides count far fewer ticks since the start of Windows, or all since 1601.
bool EventRecorder::is_tsc(std::uint64_t time) const {
  constexpr std::uint64_t kMostSeconds = 30 * 24 * 3600;
  constexpr std::uint64_t kSecondsBefore = 60;
  if (!begin_) return true;
  const std::uint64_t second = options_.tsc_khz * 1000;
  return time > *begin_ ? time - *begin_ <= kMostSeconds * second : *begin_ - time <= kSecondsBefore * second;
}

void EventRecorder::apply(const KernelEvent& event) {
  if (!is_tsc(event.tsc)) {
    ++other_clock_;
    return;
  }
  switch (event.kind) {
    case KernelEvent::Kind::SWITCH:
      return switches_.add_switch(event);
    case KernelEvent::Kind::THREAD:
      return switches_.add_thread(event.pid, event.tid, event.tsc);
    case KernelEvent::Kind::UNLOAD:
      return images_->unload(event);
    case KernelEvent::Kind::LOSS:
      return switches_.add_loss();
  }
}

void EventRecorder::write(formats::PtkWriter& writer, std::vector<WindowsBuffer>& buffers, bool all) {
  for (const KernelEvent& event : session_->take()) apply(event);
  for (WindowsBuffer& buffer : buffers) {
    if (options_.branch_records)
      buffer.write_threads(writer, [&](std::uint64_t since, std::uint64_t until) {
        return switches_.thread_between(buffer.cpu(), since, until, all);
      });
    else
      buffer.write_switches(writer, switches_.take(buffer.cpu(), all));
  }
}

void EventRecorder::drain(formats::PtkWriter& writer, std::vector<WindowsBuffer>& buffers) {
  if (refusal_.empty()) write(writer, buffers, false);
}

void EventRecorder::end(formats::PtkWriter& writer, std::vector<WindowsBuffer>& buffers) {
  if (!refusal_.empty()) return;
  session_->stop();
  write(writer, buffers, true);
}

void EventRecorder::warn(std::vector<std::string>& out) const {
  std::string text = options_.branch_records ? kBranchesOfSeveralThreads : "";
  if (!refusal_.empty()) {
    text = options_.branch_records ? kBranchesWithoutThreads : kThreadsMixed;
    text += " An image counts until another one is mapped at its addresses. " + refusal_;
  }
  if (!text.empty()) out.push_back(text);
  if (refusal_.empty()) warn_of_losses(out);
}

void EventRecorder::warn_of_losses(std::vector<std::string>& out) const {
  const EventSession::Losses losses = session_->losses();
  if (losses.events != 0 || losses.buffers != 0)
    out.push_back(
        "ETW lost " + counted(losses.events, "event") + " and " + counted(losses.buffers, "buffer") +
        ": rows near by have no thread or a wrong one, and images may count for too long. Trace less.");
  if (losses.malformed != 0)
    out.push_back(counted(losses.malformed, "event") +
                  (losses.malformed == 1 ? " of ETW has" : " of ETW have") +
                  " a layout that this program does not know, so that threads may be missing.");
  if (other_clock_ != 0)
    out.push_back(counted(other_clock_, "event") +
                  " of ETW had times of another clock than the TSC, and no use: threads may be missing.");
  if (losses.ended_early)
    out.emplace_back(
        "ETW stopped to deliver events before the recording ended: later rows may have a wrong thread.");
  if (switches_.missing() != 0)
    out.push_back("ETW's events lack " + counted(switches_.missing(), "context switch", "es") +
                  ": rows near by have no thread.");
}

}  // namespace ptkit::capture
