#include "code/source/pdb/search.h"

#include <algorithm>
#include <string_view>

#include "base/ascii.h"
#include "base/paths.h"
#include "code/image/pe/pe.h"
#include "trace/module_names.h"
#include "trace/warning_codes.h"

namespace ptkit::code::pdb {
namespace {

constexpr std::string_view kExtension = ".pdb";

// Names that the PDB of a module may have on this machine: Windows ignores case.
std::vector<std::string> names_for(const trace::ImageFile& file) {
  std::string_view stem = base::last_part(base::without_mark(file.path));
  stem = stem.substr(0, stem.rfind('.'));
  std::vector<std::string> names{code::image::pe_pdb_name(file.contents.bytes()),
                                 std::string(stem) + std::string(kExtension)};
  std::erase_if(names, [](const std::string& name) { return name.size() <= kExtension.size(); });
  for (std::size_t i = names.size(); i-- > 0;) names.push_back(base::ascii_lower(names[i]));
  return names;
}

// The folders of an id on symbol servers: those of Microsoft write the age in lower case.
std::vector<std::string> folders_for(const std::string& id) {
  const std::size_t dash = id.find('-');
  const std::string guid = base::ascii_upper(id.substr(0, dash));
  const std::string age = id.substr(dash + 1);
  return {guid + base::ascii_upper(age), guid + age, base::ascii_lower(guid) + age};
}

std::vector<std::string> candidates(const trace::ImageFile& file, const std::vector<std::string>& folders) {
  const std::vector<std::string> names = names_for(file);
  std::vector<std::string> paths;
  for (const std::string& folder : folders) {
    if (base::ascii_lower(folder).ends_with(kExtension)) paths.push_back(folder);
    for (const std::string& name : names) {
      paths.emplace_back(folder).append("/").append(name);
      const std::string below = paths.back();
      for (const std::string& id : folders_for(file.build_id))
        paths.emplace_back(below).append("/").append(id).append("/").append(name);
    }
  }
  return paths;
}

}  // namespace

FoundPdb find_pdb(const trace::ImageFile& file, const std::vector<std::string>& folders) {
  FoundPdb found;
  if (!is_pdb_id(file.build_id)) return found;
  const std::vector<std::string> names = names_for(file);
  for (const std::string& path : candidates(file, folders)) {
    auto pdb = shared_pdb(path);
    if (!pdb) continue;
    const auto id = pdb->id();
    if (id->id == file.build_id) {
      found.problems.clear();
      found.file = std::move(pdb);
      return found;
    }
    // Of PDBs that are given, one with another module's name is another module's.
    const std::string name = base::ascii_lower(base::last_part(path));
    if (std::ranges::find(names, name) == names.end()) continue;
    trace::Warning problem =
        id->problem ? *id->problem : warn(trace::WarningCode::PDB_DIFFERS, path, id->id, file.build_id);
    problem.subject = file.path;
    if (std::ranges::find(found.problems, problem) == found.problems.end())
      found.problems.push_back(std::move(problem));
  }
  return found;
}

}  // namespace ptkit::code::pdb
