#include "capture/linux/output/bundle_output.h"

#include <utility>

namespace ptkit::capture {

void NameList::number_files(const Add& add) {
  std::vector<std::int32_t> numbers;
  for (const trace::ImageFile& one : files)
    numbers.push_back(add(one.path + '\n' + std::to_string(numbers.size()) + "\nnames", one));
  for (trace::NameRange& range : ranges) range.file = numbers[static_cast<std::size_t>(range.file)];
}

BundleOutput::BundleOutput(formats::PtkWriter writer, std::uint64_t ring_bytes, FileParser& parser,
                           ReadLimits limits)
    : writer_(std::move(writer)),
      ring_(ring_bytes != 0 ? std::make_unique<TraceRing>(ring_bytes) : nullptr),
      reader_(parser, limits) {}

template <typename Write>
void BundleOutput::write(Write&& write) {
  const std::lock_guard lock(mutex_);
  write();
  if (writer_.failure()) failed_.store(true, std::memory_order_relaxed);
}

void BundleOutput::info(const formats::RecordingInfo& info) {
  write([&] { writer_.info(info); });
}

void BundleOutput::configuration(const trace::Configuration& configuration) {
  write([&] { writer_.configuration(configuration); });
}

void BundleOutput::metadata(const std::string& json_object) {
  write([&] { writer_.metadata(json_object); });
}

trace::SpaceId BundleOutput::space(std::int64_t pid) {
  const trace::SpaceId id = ++spaces_;
  write([&] { writer_.space(id, {pid, 0, false}); });
  return id;
}

void BundleOutput::describe(trace::SpaceId id, const trace::Space& space) {
  write([&] { writer_.space(id, space); });
}

std::uint32_t BundleOutput::stream(const trace::Stream& stream) {
  std::uint32_t id = 0;
  // Readers number the streams in the order of their chunks, so that must be the order of ids.
  write([&] {
    id = streams_++;
    writer_.stream(id, stream);
  });
  return id;
}

void BundleOutput::data(std::uint32_t stream, base::Bytes bytes) {
  if (ring_) return ring_->append(stream, bytes);
  write([&] { writer_.data(stream, bytes); });
}

void BundleOutput::add_to(std::uint32_t stream, const trace::Stream& more) {
  write([&] { writer_.stream(stream, more); });
}

void BundleOutput::switch_offsets(std::uint32_t stream, const trace::Stream& aligned) {
  write([&] { writer_.switch_offsets(stream, aligned); });
}

void BundleOutput::loss(std::uint32_t stream, std::uint64_t bytes, base::Status cause) {
  write([&] { writer_.loss(stream, bytes, cause); });
}

void BundleOutput::code(const std::vector<trace::CodeRegion>& regions) {
  write([&] {
    for (const trace::CodeRegion& region : regions) writer_.code(region);
  });
}

void BundleOutput::names(NameList list) {
  list.number_files(
      [this](const std::string& key, const trace::ImageFile& one) { return file(key, [&] { return one; }); });
  write([&] {
    for (const trace::NameRange& range : list.ranges) writer_.names(range);
  });
}

void BundleOutput::sideband(const trace::Sideband& record) {
  write([&] { writer_.sideband(record); });
}

void BundleOutput::warning(const trace::Warning& warning) {
  write([&] { writer_.warning(warning.text()); });
}

BundleOutput::File BundleOutput::find(const std::string& key, const std::string& path,
                                      const std::function<MappedFile()>& open) {
  // The names are read outside of the writer's lock: a large file has many.
  const std::lock_guard lock(files_mutex_);
  const FileTable::Entry entry =
      files_.find(key, path, [&] { return reader_.parse(open(), path, {ParseRequest::Kind::SYMBOLS}); });
  if (entry.fresh) write([&] { writer_.file(static_cast<std::uint32_t>(entry.number), *entry.fresh); });
  return {entry.number, entry.build_id};
}

BundleOutput::File BundleOutput::file(pid_t pid, const Mapping& mapping) {
  return find(key_of(pid, mapping), mapping.path, [&] { return reader_.open(pid, mapping); });
}

std::int32_t BundleOutput::file(pid_t pid, const std::string& path) {
  if (path.empty()) return -1;
  Mapping mapping;
  mapping.path = path;
  return find(key_of(pid, mapping), path, [&] { return reopened(locate_path(pid, path)); }).number;
}

std::int32_t BundleOutput::file(const std::string& name, const std::function<trace::ImageFile()>& make) {
  const std::lock_guard lock(files_mutex_);
  const FileTable::Entry entry = files_.find(name, name, [] { return ParsedFile(); });
  if (entry.fresh) write([&] { writer_.file(static_cast<std::uint32_t>(entry.number), make()); });
  return entry.number;
}

void BundleOutput::snapshot() {
  if (!ring_) return;
  write([&] {
    ring_->snapshot(writer_);
    writer_.flush();
  });
}

std::uint64_t BundleOutput::dropped_bytes() const { return ring_ ? ring_->dropped_bytes() : 0; }

void BundleOutput::flush() {
  write([&] { writer_.flush(); });
}

base::Result<std::uint64_t> BundleOutput::finish() {
  const std::lock_guard lock(mutex_);
  if (ring_) ring_->finish(writer_);
  return writer_.finish();
}

}  // namespace ptkit::capture
