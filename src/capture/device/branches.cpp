#include "capture/device/branches.h"

#include <cstring>
#include <utility>

#include "ptkit/ptkit_abi.h"

namespace ptkit::capture {

static_assert(sizeof(ptkit_branch_mark) == DriverBranches::kRecordBytes);

// The last branch is not later than the mark after it. Between two stretches the driver's own code runs,
// and its branches are not stored: a path of kernel code is interrupted, a path of user code is not.
void DriverBranches::end_stretch(base::Bytes branches, std::uint64_t tsc, std::vector<BranchStretch>& out) {
  BranchStretch stretch = std::exchange(now_, {});
  trace::append_bts_aux(branches, new_path_ || kernel_, stretch.records);
  if (stretch.records.empty()) return;
  new_path_ = false;
  stretch.records.back().tsc = tsc;
  predictions_.apply(stretch.records);
  out.push_back(std::move(stretch));
}

std::vector<BranchStretch> DriverBranches::take(base::Bytes bytes) {
  std::vector<BranchStretch> out;
  std::size_t begin = 0;
  for (std::size_t at = 0; bytes.size() - at >= kRecordBytes; at += kRecordBytes) {
    ptkit_branch_mark mark{};
    std::memcpy(&mark, bytes.data() + at, sizeof mark);
    if (mark.from != 0) continue;
    const bool ends = mark.pid < 0;
    if (ends && now_.since != 0) now_.until = mark.tsc;
    if (ends && now_.since == 0) now_ = {mark.tsc, ~mark.pid, ~mark.tid, -1, 0, {}};
    if (ends) now_.end_pid = ~mark.pid;
    end_stretch(bytes.subspan(begin, at - begin), mark.tsc, out);
    if (!ends) now_ = {mark.tsc, mark.pid, mark.tid, -1, 0, {}};
    begin = at + kRecordBytes;
  }
  const BranchStretch going_on = now_;
  end_stretch(bytes.subspan(begin), 0, out);
  now_ = going_on;
  return out;
}

}  // namespace ptkit::capture
