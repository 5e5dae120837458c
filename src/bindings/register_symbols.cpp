// Names for addresses, and back.
#include "bindings/bindings.h"

namespace ptkit::bindings {
namespace {

using Addresses = py::array_t<std::uint64_t, py::array::c_style | py::array::forcecast>;

py::object name_of(const symbol::Symbols& symbols, trace::SpaceId space, std::uint64_t tsc,
                   std::uint64_t ip) {
  const auto found = symbols.find(space, tsc, ip);
  if (!found) return py::none();
  return py::make_tuple(py::str(found->name.data(), found->name.size()), ip - found->address, found->file);
}

py::list find(const Session& self, const Addresses& ips, trace::SpaceId space, std::uint64_t tsc) {
  py::list names;
  for (py::ssize_t i = 0; i < ips.size(); ++i)
    names.append(name_of(*self.symbols, space, tsc, ips.data()[i]));
  return names;
}

// Where an address comes from: (file, offset in it).
py::list find_files(const Session& self, const Addresses& ips, trace::SpaceId space, std::uint64_t tsc) {
  const image::CodeView& view = self.image->view(space, tsc);
  py::list places;
  for (py::ssize_t i = 0; i < ips.size(); ++i) {
    const std::uint64_t ip = ips.data()[i];
    const image::Provenance from = view.provenance(ip);
    if (from.region < 0 || from.file < 0) {
      places.append(py::none());
      continue;
    }
    const auto& region = self.bundle->code[static_cast<std::size_t>(from.region)];
    places.append(py::make_tuple(from.file, ip - region.address + region.file_offset));
  }
  return places;
}

py::list lookup(const Session& self, const std::string& name) {
  py::list rows;
  for (const auto& found : self.symbols->lookup(name)) {
    rows.append(py::make_tuple(py::str(found.name.data(), found.name.size()), found.address, found.size,
                               found.file, found.space));
  }
  return rows;
}

}  // namespace

void register_symbols(py::module_& module) {
  module.def("find_symbols", &find, py::arg("session"), py::arg("ips"), py::arg("space") = trace::kAnySpace,
             py::arg("tsc") = trace::kTscMin, "(name, offset, file) or None for every address.");
  module.def("find_files", &find_files, py::arg("session"), py::arg("ips"),
             py::arg("space") = trace::kAnySpace, py::arg("tsc") = trace::kTscMin,
             "(file, offset in it) or None for every address.");
  module.def("lookup_symbol", &lookup, py::arg("session"), py::arg("name"),
             "(name, address, size, file, space) of every symbol of that name.");
  module.def(
      "similar_symbols",
      [](const Session& self, const std::string& name, std::size_t limit) {
        return self.symbols->similar(name, limit);
      },
      py::arg("session"), py::arg("name"), py::arg("limit") = 5);
}

}  // namespace ptkit::bindings
