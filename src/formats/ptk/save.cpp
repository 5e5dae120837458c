// Saves a whole bundle as a .ptk file.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "code/bounds/table.h"
#include "code/image/files/code_file.h"
#include "code/image/files/imports.h"
#include "code/image/files/segments.h"
#include "formats/common/missing_files.h"
#include "formats/ptk/writer.h"

namespace ptkit::formats {

namespace {

constexpr std::size_t kStepBytes = std::size_t{1} << 20U;  // bytes of trace that are read at once

using FileSet = std::set<std::int32_t>;

// Code files outside of the recording's folder. The recording only names them: they are the user's files and
// must not reach a redacted bundle.
FileSet private_files(const trace::TraceBundle& bundle) {
  const auto paths = outside_files(bundle, OutsideUse::CODE);
  FileSet files;
  for (std::size_t i = 0; i < bundle.files.size() && !paths.empty(); ++i) {
    if (std::find(paths.begin(), paths.end(), bundle.files[i].path) != paths.end())
      files.insert(static_cast<std::int32_t>(i));
  }
  return files;
}

void save_files(const trace::TraceBundle& bundle, const FileSet& left_out, PtkWriter& writer) {
  for (std::size_t i = 0; i < bundle.files.size(); ++i) {
    trace::ImageFile file{bundle.files[i].path, bundle.files[i].build_id, {}, bundle.files[i].symbols};
    const bool is_left_out = left_out.contains(static_cast<std::int32_t>(i));
    if (file.symbols.empty() && !is_left_out)
      file.symbols = code::image::read_symbols(bundle.files[i].contents.bytes(), true);
    file.unwind = bundle.files[i].unwind;
    if (file.unwind.empty() && !is_left_out)
      file.unwind = code::bounds::UnwindTable(bundle.files[i].contents.bytes()).encode();
    file.imports = bundle.files[i].imports;
    if (file.imports.empty() && !is_left_out)
      file.imports = code::image::Imports(bundle.files[i].contents.bytes()).encode();
    file.debug = bundle.files[i].debug;
    writer.file(static_cast<std::uint32_t>(i), file);
  }
}

void save_threads(const trace::TraceBundle& bundle, PtkWriter& writer) {
  for (const trace::Thread& thread : bundle.threads) {
    const bool known =
        std::any_of(bundle.sideband.begin(), bundle.sideband.end(), [&](const trace::Sideband& record) {
          return record.kind == trace::SidebandKind::THREAD && record.tid == thread.tid &&
                 record.text == thread.name;
        });
    if (known) continue;
    trace::Sideband record;
    record.kind = trace::SidebandKind::THREAD;
    record.pid = thread.pid;
    record.tid = thread.tid;
    record.text = thread.name;
    writer.sideband(record);
  }
}

// Where files begin of which code lies elsewhere in memory than in the file. Readers of the bundle, which has
// no segments, count RVAs from there.
void save_begins(const trace::TraceBundle& bundle, const FileSet& left_out, PtkWriter& writer) {
  constexpr std::uint64_t kPage = 4096;
  std::map<std::int32_t, std::vector<code::image::FileSegment>> segments;
  std::set<std::tuple<trace::SpaceId, std::int32_t, std::uint64_t>> known;
  for (const trace::CodeRegion& region : bundle.code) {
    if (region.file >= 0 && region.file_offset == 0) known.emplace(region.space, region.file, region.address);
  }
  for (const trace::CodeRegion& region : bundle.code) {
    if (region.file < 0 || left_out.contains(region.file)) continue;
    const auto [of, is_new] = segments.try_emplace(region.file);
    if (is_new)
      of->second =
          code::image::file_segments(bundle.files[static_cast<std::size_t>(region.file)].contents.bytes());
    const auto rva = code::image::rva_of(of->second, region, region.file_offset);
    if (!rva || *rva == region.file_offset) continue;
    const std::uint64_t begin = region.address - *rva;
    if (!known.emplace(region.space, region.file, begin).second) continue;
    trace::CodeRegion first;
    first.space = region.space;
    first.address = begin;
    first.size = std::min(kPage, *rva);
    first.file = region.file;
    writer.code(first);
  }
}

void save_code(const trace::TraceBundle& bundle, const FileSet& left_out, PtkWriter& writer) {
  for (const trace::CodeRegion& region : bundle.code) {
    trace::CodeRegion saved = region;
    if (left_out.contains(region.file)) saved.bytes = {};
    writer.code(saved);
  }
  for (const trace::NameRange& range : bundle.names) writer.names(range);
}

// Lost bytes take up stream offsets in the file.
void save_stream(std::uint32_t id, const trace::Stream& stream, PtkWriter& writer) {
  trace::Stream description = stream;
  description.losses.clear();
  writer.stream(id, description);
  const trace::TraceBuffer data = stream.data.again();
  std::size_t done = 0;
  const auto save_until = [&](std::size_t end) {
    while (done < end) {
      data.forget_before(done);
      const base::Bytes part = data.part(done, std::min(done + kStepBytes, end));
      writer.data(id, part);
      done += part.size();
    }
  };
  for (const trace::KnownLoss& loss : stream.losses) {
    save_until(static_cast<std::size_t>(std::min<std::uint64_t>(loss.offset, data.size())));
    writer.loss(id, loss.lost_bytes, loss.cause);
  }
  save_until(data.size());
}

// Readers begin warnings with the path of the source, which differs from the saved file's.
std::string without_source(const std::string& warning, const std::string& source) {
  const std::string prefix = source + ": ";
  return warning.starts_with(prefix) ? warning.substr(prefix.size()) : warning;
}

}  // namespace

base::Result<std::uint64_t> save_ptk(const trace::TraceBundle& bundle, const std::string& path,
                                     const PtkOptions& options) {
  if (const auto data = outside_files(bundle, OutsideUse::TRACE); options.redact && !data.empty()) {
    return base::Failure{
        base::Status::BAD_FILE, 0,
        data.front() +
            ": lies outside of the recording's folder and is not copied; if it belongs to the recording, "
            "move it into the folder and name it without a folder"};
  }
  auto created = PtkWriter::create(path, options);
  if (!created.ok()) return created.failure();
  PtkWriter& writer = created.value();
  writer.configuration(bundle.configuration);
  if (!bundle.metadata.empty()) writer.metadata(bundle.metadata);
  for (std::size_t i = 1; i < bundle.spaces.size(); ++i)
    writer.space(static_cast<trace::SpaceId>(i), bundle.spaces[i]);
  const FileSet left_out = options.redact ? private_files(bundle) : FileSet();
  save_files(bundle, left_out, writer);
  save_begins(bundle, left_out, writer);
  save_code(bundle, left_out, writer);
  save_threads(bundle, writer);
  for (const trace::Sideband& record : bundle.sideband) writer.sideband(record);
  for (std::size_t i = 0; i < bundle.streams.size(); ++i)
    save_stream(static_cast<std::uint32_t>(i), bundle.streams[i], writer);
  for (const trace::Warning& warning : bundle.warnings)
    writer.warning(without_source(warning.text(), bundle.source));
  return writer.finish();
}

}  // namespace ptkit::formats
