// The traced memory as libipt sees it: a callback over our code views.
#pragma once

#include <exception>
#include <span>

#include "image/image.h"
#include "reference/library.h"

namespace ptkit::reference {

// Without sections libipt does not cache what it decodes; it then asks for each instruction. That is wanted
// here: what it sees is what our own decoder sees, also where code changes with time.
class Memory {
 public:
  Memory(const image::Image& image, trace::SpaceId space) noexcept : image_(image), space_(space) {}
  Memory(const Memory&) = delete;  // libipt keeps its address
  Memory& operator=(const Memory&) = delete;

  // Makes `decoder` read from here. The decoder must not outlive this object.
  [[nodiscard]] bool attach(pt_insn_decoder& decoder) noexcept;

  // Who runs, where no PIP packet says so.
  void set_space(trace::SpaceId space) noexcept;
  void set_time(std::uint64_t tsc) noexcept;
  // The code in view is not valid for ever: set_time() matters.
  [[nodiscard]] bool varies() const noexcept;
  [[nodiscard]] trace::SpaceId space() const noexcept { return current_space_; }
  [[nodiscard]] const image::CodeView* view() const noexcept { return view_; }

  // What a user's read callback threw cannot pass through the library: it waits here.
  void rethrow();

 private:
  static int read(std::uint8_t* buffer, std::size_t size, const pt_asid* asid, std::uint64_t ip,
                  void* context) noexcept;
  void look(std::uint64_t cr3);

  const image::Image& image_;
  LibraryImagePtr library_image_;
  const image::CodeView* view_ = nullptr;
  std::exception_ptr exception_;
  trace::SpaceId space_;
  trace::SpaceId current_space_ = trace::kAnySpace;
  std::uint64_t tsc_ = trace::kTscMin;
  std::uint64_t cr3_ = pt_asid_no_cr3;
};

}  // namespace ptkit::reference
