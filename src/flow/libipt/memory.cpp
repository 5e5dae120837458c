#include "flow/libipt/memory.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace ptkit::flow::libipt {

bool Memory::attach(pt_insn_decoder& decoder) noexcept {
  library_image_.reset(pt_image_alloc(nullptr));
  if (library_image_ == nullptr) return false;
  return pt_image_set_callback(library_image_.get(), &Memory::read, this) >= 0 &&
         pt_insn_set_image(&decoder, library_image_.get()) >= 0;
}

void Memory::set_space(trace::SpaceId space) noexcept {
  space_ = space;
  view_ = nullptr;
}

void Memory::set_time(std::uint64_t tsc) noexcept {
  tsc_ = tsc;
  if (view_ != nullptr && (tsc < view_->valid_from() || tsc >= view_->valid_to())) view_ = nullptr;
}

bool Memory::varies() const noexcept {
  return view_ == nullptr || view_->valid_from() != trace::kTscMin || view_->valid_to() != trace::kTscMax;
}

void Memory::rethrow() {
  if (exception_) std::rethrow_exception(std::exchange(exception_, nullptr));
}

void Memory::look(std::uint64_t cr3) {
  cr3_ = cr3;
  current_space_ = cr3 == pt_asid_no_cr3 ? space_ : image_.space_of_cr3(cr3, space_);
  view_ = &image_.view(current_space_, tsc_);
}

int Memory::read(std::uint8_t* buffer, std::size_t size, const pt_asid* asid, std::uint64_t ip,
                 void* context) noexcept {
  auto& memory = *static_cast<Memory*>(context);
  try {
    if (memory.view_ == nullptr || asid->cr3 != memory.cr3_) memory.look(asid->cr3);
    const base::Bytes direct = memory.view_->bytes_at(ip);
    if (direct.size() >= size) {
      std::memcpy(buffer, direct.data(), size);
      return static_cast<int>(size);
    }
    const std::size_t found = memory.view_->read(ip, {buffer, size});
    return found == 0 ? -pte_nomap : static_cast<int>(found);
  } catch (...) {
    memory.exception_ = std::current_exception();
    return -pte_nomap;
  }
}

}  // namespace ptkit::flow::libipt
