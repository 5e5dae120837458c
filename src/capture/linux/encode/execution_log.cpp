#include "capture/linux/encode/execution_log.h"

namespace ptkit::capture {

namespace {
constexpr std::size_t kPendingWords = 8192;
}

void ExecutionLog::add(std::uint64_t word) {
  if (!on_) return;
  pending_.push_back(word);
  if (pending_.size() >= kPendingWords) flush();
}

void ExecutionLog::flush() {
  if (file_ == nullptr) return;
  failed_ |=
      std::fwrite(pending_.data(), sizeof(std::uint64_t), pending_.size(), file_.get()) != pending_.size();
  failed_ |= std::fflush(file_.get()) != 0;
  pending_.clear();
}

}  // namespace ptkit::capture
