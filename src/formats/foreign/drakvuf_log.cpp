#include "formats/foreign/drakvuf_log.h"

#include <algorithm>
#include <string_view>

#include "base/paths.h"
#include "formats/common/json.h"

namespace ptkit::formats::drakvuf {

namespace {

using Member = JsonReader::Member;

constexpr std::uint64_t kPageMask = 4096 - 1;
constexpr std::size_t kMostLineBytes = 1 << 16;

// DRAKVUF renamed plugins and members: reads the new or the older member.
Member either(const Member& object, const char* name, const char* older) {
  const Member found = object[name];
  return found.present() ? found : object[older];
}

std::string last_name(const std::string& path) { return std::string(base::last_part(path)); }

void add_process(const Member& line, std::uint64_t cr3, Log& log) {
  if (!line["PID"].present()) return;
  const std::int64_t pid = line["PID"].signed_number();
  log.processes.try_emplace(cr3, pid);
  if (!line["TID"].present()) return;
  const Member name = line["ProcessName"];
  log.threads.try_emplace({pid, line["TID"].signed_number()},
                          name.present() ? last_name(name.text()) : std::string());
}

void add_page(const Member& line, std::uint64_t cr3, Log& log) {
  const std::string file = either(line, "DumpFile", "FrameFile").text();
  const std::uint64_t address = either(line, "PageVA", "FrameVA").wide_number();
  const std::uint64_t physical = line["TrapPA"].wide_number();
  if (file == "(null)") return;  // DRAKVUF could not save the page
  log.pages.push_back({cr3, address & ~kPageMask, physical & ~kPageMask, last_name(file)});
}

void read_line(std::string_view text, Log& log) {
  const base::Bytes bytes(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
  const bool deep = find_json_too_deep(bytes) != bytes.size();
  const Json value = deep ? Json() : Json::parse(text.begin(), text.end(), nullptr, false);
  JsonReader json("");
  const Member line = json.root(value);
  if (!value.is_object()) {
    ++log.bad_lines;
    return;
  }
  if (!line["CR3"].present()) return;
  const std::uint64_t cr3 = line["CR3"].wide_number() & ~kPageMask;
  const Member kind = either(line, "EventType", "Plugin");
  const std::string event = kind.present() ? kind.text() : std::string();
  Log found;
  add_process(line, cr3, found);
  if (event == "execframe") {
    add_page(line, cr3, found);
  } else if (event == "pagefault") {
    const std::uint64_t physical = line["PA"].wide_number();
    found.faults.push_back({cr3, line["VA"].wide_number() & ~kPageMask, physical & ~kPageMask});
  }
  if (json.failure()) {
    ++log.bad_lines;
    return;
  }
  for (const auto& [tables, pid] : found.processes) {
    const auto [known, is_new] = log.processes.try_emplace(tables, pid);
    if (!is_new && known->second != pid) log.taken_over.insert(tables);
  }
  log.threads.merge(found.threads);
  log.pages.insert(log.pages.end(), found.pages.begin(), found.pages.end());
  log.faults.insert(log.faults.end(), found.faults.begin(), found.faults.end());
}

}  // namespace

void read_log(base::Bytes bytes, Log& log) {
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.find("\"CR3\"") == std::string_view::npos) continue;
    if (line.size() > kMostLineBytes) {
      ++log.bad_lines;
    } else {
      read_line(line, log);
    }
  }
}

}  // namespace ptkit::formats::drakvuf
