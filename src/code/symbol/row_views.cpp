#include "code/symbol/row_views.h"

namespace ptkit::code::symbol {

using code::image::CodeView;

bool maps(const CodeView& view, std::uint64_t ip) { return view.provenance(ip).region >= 0; }

code::image::Provenance file_at(const code::image::Image& image, const CodeView& view, std::uint64_t ip) {
  return file_of(image, view, view.provenance(ip), ip);
}

code::image::Provenance file_of(const code::image::Image& image, const CodeView& view,
                                const code::image::Provenance& seen, std::uint64_t ip) {
  if (seen.file >= 0 || seen.region < 0) return seen;
  return image.file_beneath(view.space(), seen, ip, view.valid_from());
}

const CodeView* RowViews::with_code(const CodeView& first, const RowTimes& times, std::uint64_t ip) const {
  if (maps(first, ip)) return &first;
  const CodeView* view = &image_.view(first.space(), times.second);
  while (!maps(*view, ip)) {
    if (!times.backwards || view->valid_from() == trace::kTscMin) return nullptr;
    view = &image_.view(first.space(), view->valid_from() - 1);
  }
  return view;
}

}  // namespace ptkit::code::symbol
