#include "flow/way_insns.h"

#include <algorithm>

#include "flow/decision_graph.h"

namespace ptkit::flow {

std::uint32_t WayInsns::add(std::uint32_t id, std::span<const Step> steps, const std::uint64_t* ips,
                            const std::uint8_t* sizes, const std::uint8_t* classes) {
  const std::uint32_t first = end_;
  std::size_t end = first;
  for (const Step& step : steps) end += step.count;
  if (id >= firsts_.size()) firsts_.resize(std::max<std::size_t>(id + 1, firsts_.size() * 2));
  if (ips_.size() < end + kSlack) {
    const std::size_t size = std::max(end + kSlack, ips_.size() + ips_.size() / 2);
    ips_.resize(size);
    sizes_.resize(size);
    classes_.resize(size);
  }
  std::size_t at = first;
  for (const Step& step : steps) {
    std::copy_n(ips + step.first, step.count, ips_.data() + at);
    std::copy_n(sizes + step.first, step.count, sizes_.data() + at);
    std::copy_n(classes + step.first, step.count, classes_.data() + at);
    at += step.count;
  }
  end_ = static_cast<std::uint32_t>(end);
  firsts_[id] = first;
  return first;
}

}  // namespace ptkit::flow
