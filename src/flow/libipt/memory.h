// libipt's read callback over ptkit's code views.
#pragma once

#include <exception>
#include <span>

#include "code/image/image.h"
#include "flow/libipt/library.h"

namespace ptkit::flow::libipt {

// Without sections, libipt does not cache decoded code and reads each instruction. So libipt and ptkit's
// decoder always see the same code, even if the code changes with time.
class Memory {
 public:
  Memory(const code::image::Image& image, trace::SpaceId space) noexcept : image_(image), space_(space) {}
  Memory(const Memory&) = delete;  // libipt keeps its address
  Memory& operator=(const Memory&) = delete;

  // Sets the read callback of `decoder`, which must not outlive this object.
  [[nodiscard]] bool attach(pt_insn_decoder& decoder) noexcept;

  // The running thread by switch records, if no PIP packet reports it.
  void set_space(trace::SpaceId space) noexcept;
  void set_time(std::uint64_t tsc) noexcept;
  // Whether the code changes with time: then set_time() is needed.
  [[nodiscard]] bool varies() const noexcept;
  [[nodiscard]] trace::SpaceId space() const noexcept { return current_space_; }
  [[nodiscard]] const code::image::CodeView* view() const noexcept { return view_; }

  // An exception of a user's read callback must not pass through libipt, so it is kept here.
  void rethrow();

 private:
  static int read(std::uint8_t* buffer, std::size_t size, const pt_asid* asid, std::uint64_t ip,
                  void* context) noexcept;
  void look(std::uint64_t cr3);

  const code::image::Image& image_;
  LibraryImagePtr library_image_;
  const code::image::CodeView* view_ = nullptr;
  std::exception_ptr exception_;
  trace::SpaceId space_;
  trace::SpaceId current_space_ = trace::kAnySpace;
  std::uint64_t tsc_ = trace::kTscMin;
  std::uint64_t cr3_ = pt_asid_no_cr3;
};

}  // namespace ptkit::flow::libipt
