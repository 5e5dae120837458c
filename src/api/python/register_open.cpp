// Opens files and folders of every known format.
#include "api/python/bindings.h"
#include "api/python/text.h"
#include "base/system/new_contents.h"
#include "base/system/output_file.h"
#include "base/system/owner.h"
#include "formats/common/files.h"
#include "formats/ptk/writer.h"
#include "formats/registry.h"

namespace ptkit::api::python {
namespace {

BundleHandle handle_of(base::Result<trace::TraceBundle> result) {
  BundleHandle handle;
  handle.bundle = std::make_shared<trace::TraceBundle>(value_or_raise(std::move(result)));
  return handle;
}

BundleHandle open_bundle(const std::string& path, const std::string& format,
                         const std::vector<std::string>& binaries, std::optional<std::uint64_t> bts_index,
                         bool without_psb) {
  const formats::OpenOptions options{format, binaries, bts_index, without_psb};
  auto result = [&] {
    const py::gil_scoped_release release;
    return formats::open(path, options);
  }();
  return handle_of(std::move(result));
}

BundleHandle open_bytes(const std::string& name, const py::buffer& data, const std::string& format,
                        const std::vector<std::string>& binaries, std::optional<std::uint64_t> bts_index,
                        bool without_psb) {
  const formats::OpenOptions options{format, binaries, bts_index, without_psb};
  trace::TraceBuffer bytes = buffer_from_python(data, "a recording");
  auto result = [&] {
    const py::gil_scoped_release release;
    return formats::open_bytes(name, bytes, options);
  }();
  return handle_of(std::move(result));
}

std::uint64_t save_bundle(const BundleHandle& handle, const std::string& path, bool redact) {
  auto result = [&] {
    const py::gil_scoped_release release;
    return formats::save_ptk(*handle.bundle, path,
                             {.redact = redact, .naming = formats::ptk::Naming::AT_ITS_END});
  }();
  return value_or_raise(std::move(result));
}

py::str describe_content(const py::bytes& head) {
  const std::string_view bytes = head;
  return text_of(formats::describe({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}));
}

// Writes a file that replaces an earlier one when it is complete.
void write_file(const std::string& path, const py::buffer& contents) {
  const trace::TraceBuffer buffer = buffer_from_python(contents, "the contents of a file");
  if (const auto failure = base::write_new_file(path, buffer.bytes())) raise_failure(*failure);
}

// A file that is written in parts, and replaces an earlier one when it is complete.
class NewFile {
 public:
  explicit NewFile(const std::string& path)
      : path_(path), file_(value_or_raise(base::OutputFile::create(path))) {}

  void write(const py::buffer& bytes) {
    const trace::TraceBuffer buffer = buffer_from_python(bytes, "bytes of a file");
    const bool written = [&] {
      const py::gil_scoped_release release;
      return file_.write(buffer.bytes());
    }();
    if (!written) fail();
  }
  void finish() {
    if (const auto failure = file_.name()) raise_failure(*failure);
    if (!file_.close(base::sudo_caller())) fail();
  }

 private:
  [[noreturn]] void fail() const {
    raise_failure({base::Status::IO_ERROR, 0, path_ + ": cannot write: " + file_.error()});
  }

  std::string path_;
  base::OutputFile file_;
};

py::list format_rows() {
  py::list rows;
  for (const auto& format : formats::formats())
    rows.append(py::make_tuple(format.name, format.description, format.unverified));
  return rows;
}

}  // namespace

void register_open(py::module_& module) {
  module.def("open_bundle", &open_bundle, py::arg("path"), py::arg("format") = "",
             py::arg("binaries") = std::vector<std::string>(), py::arg("bts_index") = py::none(),
             py::arg("without_psb") = false,
             "Reads a trace by content, or by the named format; looks for programs in these folders first.");
  module.def("open_bundle_bytes", &open_bytes, py::arg("name"), py::arg("data"), py::arg("format") = "",
             py::arg("binaries") = std::vector<std::string>(), py::arg("bts_index") = py::none(),
             py::arg("without_psb") = false,
             "Reads the bytes of a recording of one file, which messages call by this name.");
  module.def("save_bundle", &save_bundle, py::arg("bundle"), py::arg("path"), py::kw_only(),
             py::arg("redact") = false, "Writes a .ptk bundle; gives its size in bytes.");
  module.def(
      "mode_of_new_file",
      [](const std::string& path) { return value_or_raise(base::mode_of_new_file(path)); }, py::arg("path"),
      "The mode that a new file has there; it is removed. 0: this system has no modes.");
  module.def(
      "refused_output",
      [](const std::string& path) {
        const auto refused = base::refused_output(path);
        return text_of(refused ? refused->detail : std::string());
      },
      py::arg("path"),
      "Why no file is written at this path; empty: it can be, or opening it gives the error.");
  py::class_<NewFile>(module, "NewFile", "A file that replaces an earlier one when it is complete.")
      .def(py::init<const std::string&>(), py::arg("path"))
      .def("write", &NewFile::write, py::arg("bytes"), "Append bytes.")
      .def("finish", &NewFile::finish, "Give the file its name. Without this call it is removed.");
  module.def("write_file", &write_file, py::arg("path"), py::arg("contents"),
             "Writes a file that replaces an earlier one when it is complete.");
  module.def("describe_content", &describe_content, py::arg("head"),
             "What a file with these first bytes is, in words.");
  module.def("formats", &format_rows, "(name, description, unverified) of every reader.");
}

}  // namespace ptkit::api::python
