#include "capture/linux/files/parse_request.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/fields.h"
#include "capture/linux/files/mapped_file.h"
#include "code/bounds/table.h"
#include "code/image/elf/debug_sections.h"
#include "code/image/elf/elf.h"
#include "code/image/files/code_file.h"
#include "code/image/files/imports.h"
#include "code/symbol/symbols.h"
#include "formats/perf_event/jit.h"
#include "trace/warning_codes.h"

namespace ptkit::capture {

namespace {

constexpr std::size_t kMaxSimilar = 3;

template <typename Fields>
void describe(Fields& fields, ParseRequest& request) {
  fields(request.kind);
  fields(request.file_bytes);
  fields.text(request.name);
  fields(request.tsc);
  fields(request.debug);
}

template <typename Fields>
void describe(Fields& fields, ParsedFile& file) {
  fields(file.shrunk);
  fields.text(file.build_id);
  base::list_fields(fields, file.symbols, [&](trace::SymbolEntry& one) {
    fields.text(one.name);
    fields(one.file_offset);
    fields(one.size);
  });
  base::list_fields(fields, file.unwind, [&](std::uint8_t& one) { fields(one); });
  base::list_fields(fields, file.imports, [&](std::uint8_t& one) { fields(one); });
  fields.text(file.debug);
  base::list_fields(fields, file.spans, [&](FunctionSpan& one) {
    fields(one.offset);
    fields(one.size);
  });
  base::list_fields(fields, file.similar, [&](std::string& one) { fields.text(one); });
  base::list_fields(fields, file.functions, [&](JitFunction& one) {
    fields(one.tsc);
    fields(one.address);
    fields(one.size);
    fields(one.file_offset);
  });
  bool has_problem = file.problem.has_value();
  fields(has_problem);
  if (!has_problem) return;
  if (!file.problem) file.problem.emplace();
  fields(file.problem->code);
  base::list_fields(fields, file.problem->arguments, [&](std::string& one) { fields.text(one); });
}

template <typename T>
std::vector<std::uint8_t> encoded(T value) {
  base::FieldWriter fields;
  describe(fields, value);
  return std::move(fields.bytes());
}

// The symbols of a file that is mapped at address 0 as a whole: addresses are file offsets.
code::symbol::Symbols symbols_of(trace::TraceBuffer contents) {
  auto bundle = std::make_shared<trace::TraceBundle>();
  trace::ImageFile& file = bundle->files.emplace_back();
  file.contents = std::move(contents);
  trace::CodeRegion& region = bundle->code.emplace_back();
  region.size = file.contents.size();
  region.file = 0;
  return code::symbol::Symbols(std::move(bundle));
}

void read_jit_dump(const trace::TraceBuffer& contents, std::uint64_t tsc, ParsedFile& out) {
  trace::TraceBundle bundle;
  std::vector<formats::perf::Event> loads;
  formats::perf::Event marker;
  marker.tsc = tsc;
  out.problem = formats::perf::read_jit_dump(bundle, contents, marker, loads);
  for (const formats::perf::Event& one : loads)
    out.functions.push_back({one.tsc, one.address, one.size, one.file_offset});
  if (!bundle.files.empty()) out.symbols = std::move(bundle.files.front().symbols);
}

void read_jit_map(base::Bytes contents, ParsedFile& out) {
  const std::string_view text(reinterpret_cast<const char*>(contents.data()), contents.size());
  for (const formats::perf::JitMapLine& one : formats::perf::read_jit_map_lines(text)) {
    if (one.size == 0 || one.name.find('\0') != std::string_view::npos) continue;
    out.functions.push_back({0, one.address, one.size, one.end});
    out.symbols.push_back({std::string(one.name), 0, one.size});
  }
}

void parse_contents(const ParseRequest& request, trace::TraceBuffer contents, ParsedFile& out) {
  using Kind = ParseRequest::Kind;
  switch (request.kind) {
    case Kind::SYMBOLS:
      out.symbols = code::image::read_symbols(contents.bytes(), true);
      out.unwind = code::bounds::UnwindTable(contents.bytes()).encode();
      out.imports = code::image::Imports(contents.bytes()).encode();
      if (request.debug) out.debug = code::image::debug_sections(contents.bytes());
      [[fallthrough]];
    case Kind::BUILD_ID:
      out.build_id = code::image::elf_build_id(contents.bytes());
      return;
    case Kind::FUNCTIONS:
      for (const code::symbol::Symbol& one : symbols_of(std::move(contents)).lookup(request.name))
        out.spans.push_back({one.address, one.size});
      return;
    case Kind::SIMILAR:
      out.similar = symbols_of(std::move(contents)).similar(request.name, kMaxSimilar);
      return;
    case Kind::JIT_DUMP:
      return read_jit_dump(contents, request.tsc, out);
    case Kind::JIT_MAP:
      return read_jit_map(contents.bytes(), out);
  }
}

// A warning of read_jit_dump(): its only argument is an offset in the file.
bool is_of_jit_dump(const trace::Warning& warning) {
  using trace::WarningCode;
  const bool is_known = warning.code == WarningCode::JITDUMP_INVALID ||
                        warning.code == WarningCode::JITDUMP_CUT ||
                        warning.code == WarningCode::JITDUMP_NO_TSC;
  const auto is_number = [](const std::string& text) {
    return text.size() <= 20 && text.find_first_not_of("0123456789") == std::string::npos;
  };
  return is_known && warning.arguments.size() == trace::count_arguments(warning.code) &&
         std::ranges::all_of(warning.arguments, is_number);
}

bool is_name(const std::string& text) { return text.find('\0') == std::string::npos; }

// Whether parse() cannot give this answer for a file of that size.
bool is_invalid(const ParseRequest& request, const ParsedFile& file) {
  const std::uint64_t end = request.file_bytes;
  const bool ordered = request.kind == ParseRequest::Kind::JIT_DUMP ||
                       std::ranges::is_sorted(file.symbols, {}, &trace::SymbolEntry::file_offset);
  const bool symbols = std::ranges::all_of(file.symbols, [&](const trace::SymbolEntry& one) {
    return one.file_offset < end && is_name(one.name);
  });
  const bool is_map = request.kind == ParseRequest::Kind::JIT_MAP;
  const bool functions = std::ranges::all_of(file.functions, [&](const JitFunction& one) {
    if (is_map) return one.size != 0 && one.file_offset <= end;
    return one.size != 0 && one.size <= end && one.file_offset <= end - one.size && one.tsc >= request.tsc;
  });
  if (is_map && (file.functions.size() != file.symbols.size() ||
                 !std::ranges::is_sorted(file.functions, {}, &JitFunction::file_offset)))
    return true;
  const bool unwind = file.unwind.empty() || code::bounds::UnwindTable::decode(file.unwind, end).has_value();
  const bool imports = file.imports.empty() || code::image::Imports::decode(file.imports).has_value();
  return !ordered || !symbols || !functions || !unwind || !imports ||
         (!request.debug && !file.debug.empty()) ||
         file.build_id.find_first_not_of("0123456789abcdef") != std::string::npos ||
         std::ranges::any_of(file.spans, [&](const FunctionSpan& one) { return one.offset >= end; }) ||
         file.similar.size() > kMaxSimilar || !std::ranges::all_of(file.similar, is_name) ||
         (file.problem && !is_of_jit_dump(*file.problem));
}

}  // namespace

std::vector<std::uint8_t> encode(const ParseRequest& request) { return encoded(request); }

std::vector<std::uint8_t> parse(base::Bytes request, const Fd& file) {
  ParseRequest decoded;
  base::FieldReader fields(request);
  describe(fields, decoded);
  ParsedFile out;
  if (!fields.good()) return {};
  trace::TraceBuffer contents = read_whole(file, decoded.file_bytes, out.shrunk);
  parse_contents(decoded, std::move(contents), out);
  return encoded(std::move(out));
}

std::optional<ParsedFile> decode(const ParseRequest& request, base::Bytes answer) {
  ParsedFile out;
  base::FieldReader fields(answer);
  describe(fields, out);
  if (!fields.good() || !fields.rest().empty() || is_invalid(request, out)) return {};
  return out;
}

}  // namespace ptkit::capture
