// Which rows a request selects, by thread, address space, address, time and kind.
#pragma once

#include "flow/rows/rows.h"
#include "packet/packet.h"
#include "tables/columns/ip_set.h"
#include "tables/columns/request.h"
#include "time/track.h"

namespace ptkit::tables::columns {

class RowFilter {
 public:
  explicit RowFilter(const Selection& selection) : selection_(selection), ips_(selection.ips) {}

  // The following rows are of this context.
  void follow(const flow::Context& context) noexcept;
  // The following rows are of the context of `other`, which has the same selection.
  void follow(const RowFilter& other) noexcept {
    space_ = other.space_;
    context_selected_ = other.context_selected_;
  }

  // Whether rows of the context are selected.
  [[nodiscard]] bool selects_context() const noexcept { return context_selected_; }
  [[nodiscard]] bool selects_time(const time::TimeRange& range) const noexcept {
    return !selection_.by_time ||
           (range.known && range.tsc >= selection_.tsc_begin && range.tsc < selection_.tsc_end);
  }
  [[nodiscard]] bool selects_ip(std::uint64_t ip) const noexcept { return selects_ips(ip, ip); }
  [[nodiscard]] bool selects_ips(std::uint64_t first, std::uint64_t last) const noexcept {
    return ips_.empty() || ips_.meets(first, last, space_);
  }
  // Whether a row is selected, but for its time. Of direct jumps that are to be tested, all.
  [[nodiscard]] bool selects(const packet::Packet& packet) const noexcept;
  [[nodiscard]] bool selects(const flow::Branch& branch) const noexcept;
  // Whether a branch is selected, but for its time and its addresses.
  [[nodiscard]] bool chooses(const flow::Branch& branch) const noexcept;
  [[nodiscard]] bool selects(const flow::Event& event) const noexcept;
  [[nodiscard]] bool selects(const flow::FlowError& error) const noexcept;
  [[nodiscard]] bool selects(const flow::Gap& gap) const noexcept;

  [[nodiscard]] bool by_time() const noexcept { return selection_.by_time; }
  [[nodiscard]] bool by_ip() const noexcept { return !ips_.empty(); }
  [[nodiscard]] const IpSet& ips() const noexcept { return ips_; }
  [[nodiscard]] const flow::BranchChoice& branches() const noexcept { return selection_.branches; }
  [[nodiscard]] trace::SpaceId space() const noexcept { return space_; }  // of the context

 private:
  [[nodiscard]] bool selects_end(bool known, std::uint64_t ip) const noexcept {
    return known && selects_ip(ip);
  }

  const Selection& selection_;
  IpSet ips_;
  trace::SpaceId space_ = 0;
  bool context_selected_ = true;
};

}  // namespace ptkit::tables::columns
