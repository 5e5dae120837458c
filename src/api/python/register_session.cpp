// Session: a bundle with its code. Reads code, disassembles, converts times, and calls a Python code
// function.
#include <algorithm>
#include <array>
#include <cstring>

#include "api/python/bindings.h"
#include "api/python/text.h"
#include "code/insn/insn.h"
#include "tables/calls/code/symbol_facts.h"
#include "time/track.h"

namespace ptkit::api::python {

CodeCallback::~CodeCallback() {
  const py::gil_scoped_acquire gil;
  function_.release().dec_ref();
  raised_ = nullptr;
}

std::size_t CodeCallback::read(trace::SpaceId space, std::uint64_t address, std::span<std::uint8_t> out) {
  const py::gil_scoped_acquire gil;
  {
    const std::scoped_lock lock(mutex_);
    if (raised_ != nullptr) return 0;
  }
  try {
    const py::object given = function_(address, out.size(), space);
    if (given.is_none()) return 0;
    const auto buffer = buffer_from_python(given, "what image_callback returns");
    const std::size_t count = std::min(buffer.size(), out.size());
    if (count != 0) std::memcpy(out.data(), buffer.bytes().data(), count);
    return count;
  } catch (...) {
    const std::scoped_lock lock(mutex_);
    if (raised_ == nullptr) raised_ = std::current_exception();
  }
  return 0;
}

void CodeCallback::rethrow() {
  std::exception_ptr raised;
  {
    const std::scoped_lock lock(mutex_);
    std::swap(raised, raised_);
  }
  if (raised != nullptr) std::rethrow_exception(raised);
}

void prepare_stream(const trace::Stream& stream) {
  std::optional<base::Failure> failure;
  {
    const py::gil_scoped_release release;
    failure = stream.data.prepare();
  }
  if (failure) raise_failure(*failure);
}

namespace {

std::unique_ptr<Session> make_session(const BundleHandle& handle, const py::object& callback,
                                      const std::optional<std::vector<std::string>>& debug_folders) {
  auto session = std::make_unique<Session>();
  session->bundle = std::make_shared<const trace::TraceBundle>(*handle.bundle);
  code::image::ReadCallback read;
  if (!callback.is_none()) {
    session->callback = std::make_shared<CodeCallback>(callback);
    read = [kept = session->callback](trace::SpaceId space, std::uint64_t address,
                                      std::span<std::uint8_t> out) {
      return kept->read(space, address, out);
    };
  }
  session->image = std::make_unique<code::image::Image>(session->bundle, std::move(read));
  session->code_caches = std::make_unique<flow::CodeCachePool>(*session->image);
  session->facts = std::make_shared<tables::columns::StreamFacts>(session->bundle->streams.size());
  if (debug_folders)
    session->debug = std::make_shared<const code::symbol::DebugModules>(session->bundle, *debug_folders);
  session->symbols = std::make_unique<code::symbol::Symbols>(session->bundle, session->debug);
  session->recorded_symbols = std::make_unique<code::symbol::Symbols>(session->bundle);
  session->tail_jumps =
      std::make_unique<tables::calls::TailCallCheck>(*session->image, *session->recorded_symbols);
  session->loads = std::make_unique<code::symbol::LoadAddresses>(session->bundle);
  if (debug_folders) session->lines = std::make_unique<code::symbol::SourceLines>(session->debug);
  return session;
}

py::bytes read_code(const Session& self, std::uint64_t ip, std::size_t size, trace::SpaceId space,
                    std::uint64_t tsc) {
  std::vector<std::uint8_t> bytes(size);
  const auto& view = self.image->view(space, tsc);
  std::size_t count = view.read(ip, bytes);
  if (count == 0 && self.callback != nullptr) {
    count = self.callback->read(space, ip, bytes);
    self.callback->rethrow();
  }
  return {reinterpret_cast<const char*>(bytes.data()), count};
}

std::string disassemble_bytes(const py::buffer& code, std::uint64_t ip, unsigned mode,
                              std::uint32_t cs_base) {
  const auto bytes = buffer_from_python(code, "code");
  return code::insn::disassemble(static_cast<code::insn::ExecMode>(mode), bytes.bytes(), ip, cs_base);
}

constexpr std::size_t kMostBytes = 15;  // of an instruction

// Instructions as text, as their code was at the end of the recording, else at its begin; "" without code.
py::list disassemble_at(const Session& self, const py::array_t<std::uint64_t, py::array::c_style>& ips,
                        const py::array_t<std::uint32_t, py::array::c_style>& spaces, unsigned mode,
                        std::uint32_t cs_base) {
  if (ips.size() != spaces.size()) throw py::value_error("ips and spaces differ in length");
  py::list texts(ips.size());
  std::array<std::uint8_t, kMostBytes> bytes{};
  for (py::ssize_t i = 0; i < ips.size(); ++i) {
    const std::uint64_t ip = ips.data()[i];
    const trace::SpaceId space = spaces.data()[i];
    std::size_t count = self.image->view(space, trace::kTscMax - 1).read(ip, bytes);
    if (count == 0) count = self.image->view(space, trace::kTscMin).read(ip, bytes);
    if (count == 0 && self.callback != nullptr) {
      count = self.callback->read(space, ip, bytes);
      self.callback->rethrow();
    }
    texts[static_cast<std::size_t>(i)] =
        count == 0 ? std::string()
                   : code::insn::disassemble(static_cast<code::insn::ExecMode>(mode),
                                             std::span(bytes).first(count), ip, cs_base);
  }
  return texts;
}

// Widths (16, 32, 64) of the code that was decoded so far.
py::list code_bits(const Session& self) {
  py::list bits;
  for (const auto mode :
       {code::insn::ExecMode::BITS16, code::insn::ExecMode::BITS32, code::insn::ExecMode::BITS64}) {
    if (self.code_caches->met(mode)) bits.append(static_cast<unsigned>(mode));
  }
  return bits;
}

// The size of the instruction; 0: no instruction.
unsigned instruction_size(const py::buffer& code, unsigned mode) {
  const auto bytes = buffer_from_python(code, "code");
  code::insn::Insn out;
  return code::insn::decode(static_cast<code::insn::ExecMode>(mode), bytes.bytes(), out) == base::Status::OK
             ? out.size
             : 0u;
}

py::array_t<std::int64_t> tsc_to_ns(
    const Session& self, const py::array_t<std::uint64_t, py::array::c_style | py::array::forcecast>& tsc) {
  py::array_t<std::int64_t> out(tsc.size());
  const auto* from = tsc.data();
  auto* to = out.mutable_data();
  const auto& clock = self.bundle->configuration.clock;
  for (py::ssize_t i = 0; i < tsc.size(); ++i) to[i] = time::tsc_to_ns(clock, from[i]);
  return out;
}

}  // namespace

void register_session(py::module_& module) {
  py::class_<Session, std::shared_ptr<Session>>(module, "Session", "A bundle that no longer changes.")
      .def(py::init(&make_session), py::arg("bundle"), py::arg("callback") = py::none(),
           py::arg("debug_folders") = py::none())
      .def("read_code", &read_code, py::arg("ip"), py::arg("size"), py::arg("space") = trace::kAnySpace,
           py::arg("tsc") = trace::kTscMin)
      .def("disassemble", &disassemble_at, py::arg("ips"), py::arg("spaces"), py::arg("mode"),
           py::arg("cs_base") = 0)
      .def("take_debug_problems",
           [](const Session& self) {
             return python_warnings(self.debug ? self.debug->take_problems() : std::vector<trace::Warning>{});
           })
      .def_property_readonly(
          "kept_instructions", [](const Session& self) { return self.code_caches->idle().decoded; },
          "Decoded instructions that the next decoders of this session need not decode again.")
      .def_property_readonly(
          "decoded_bytes", [](const Session& self) { return self.decoded->load(std::memory_order_relaxed); },
          "Bytes of streams that were decoded so far, also while another thread decodes.")
      .def_property_readonly("code_bits", &code_bits,
                             "16, 32 and 64: widths of the code that our decoders have met so far.")
      .def_property_readonly(
          "filter_signs", [](const Session& self) { return self.code_caches->filter_signs(); },
          "Number of locations so far that only an address filter explains, where none is known.")
      .def("has_code", [](const Session& self) { return !self.image->empty(); })
      .def_property_readonly("own_spaces", [](const Session& self) { return self.loads->spaces(); })
      .def_property_readonly("has_lists", [](const Session& self) { return !self.bundle->names.empty(); })
      .def("tsc_to_ns", &tsc_to_ns, py::arg("tsc"));
  module.def("disassemble", &disassemble_bytes, py::arg("code"), py::arg("ip"), py::arg("mode"),
             py::arg("cs_base") = 0, "Text of the first instruction.");
  module.def("instruction_size", &instruction_size, py::arg("code"), py::arg("mode"),
             "Bytes of the first instruction, 0 if it is none.");
}

}  // namespace ptkit::api::python
