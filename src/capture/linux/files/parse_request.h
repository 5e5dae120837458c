// Requests to parse mapped files, and their answers, encoded as bytes for a process without privileges
// (file_parser.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "capture/linux/process/process.h"
#include "trace/bundle.h"
#include "trace/warning.h"

namespace ptkit::capture {

struct ParseRequest {
  enum class Kind : std::uint8_t {
    BUILD_ID,
    SYMBOLS,    // symbols, bounds of functions, and build-id
    FUNCTIONS,  // the functions called `name`
    SIMILAR,    // symbols like `name`
    JIT_DUMP,
    JIT_MAP,  // the lines of a perf-PID.map
  };
  Kind kind = Kind::BUILD_ID;
  std::uint64_t file_bytes = 0;  // how many bytes of the file to read
  std::string name{};
  std::uint64_t tsc = 0;  // JIT_DUMP: when the dump was mapped
  bool debug = false;     // SYMBOLS: and debug information
};

// A JIT function in a jitdump or a perf-PID.map.
struct JitFunction {
  std::uint64_t tsc = 0;  // JIT_DUMP: valid from
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  std::uint64_t file_offset = 0;  // of its code in the dump, of the end of its line in the map
};

// The code of a function in a file.
struct FunctionSpan {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

struct ParsedFile {
  bool shrunk = false;  // the file has fewer bytes than the request has
  std::string build_id;
  std::vector<trace::SymbolEntry> symbols;  // SYMBOLS, JIT_DUMP, JIT_MAP (of each function, in order)
  std::vector<std::uint8_t> unwind;         // SYMBOLS: as trace::ImageFile has it
  std::vector<std::uint8_t> imports;        // SYMBOLS: as trace::ImageFile has it
  std::string debug;                        // SYMBOLS: code::image::debug_sections()
  std::vector<FunctionSpan> spans;          // FUNCTIONS
  std::vector<std::string> similar;
  std::vector<JitFunction> functions;
  std::optional<trace::Warning> problem;  // JIT_DUMP: without the path of the dump
};

[[nodiscard]] std::vector<std::uint8_t> encode(const ParseRequest& request);
// The answer to an encoded request. Uses only system calls for memory and for reading the file.
[[nodiscard]] std::vector<std::uint8_t> parse(base::Bytes request, const Fd& file);
// Decodes an answer. nullopt if parse() cannot give this answer to the request.
[[nodiscard]] std::optional<ParsedFile> decode(const ParseRequest& request, base::Bytes answer);

}  // namespace ptkit::capture
