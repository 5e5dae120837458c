// A recording in memory: streams, context switches, code, clock and processor. Readers create it, decoders
// use it.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "trace/buffer.h"
#include "trace/warning.h"

namespace ptkit::trace {

// An address space: one process, one CR3, or "any". Ids index TraceBundle::spaces; space 0 always exists
// and is the default: its code is visible in every space, unless a region of the space itself hides it.
using SpaceId = std::uint32_t;
inline constexpr SpaceId kAnySpace = 0;

inline constexpr std::int64_t kNoId = -1;  // unknown pid, tid or cpu
inline constexpr std::uint64_t kTscMin = 0;
inline constexpr std::uint64_t kTscMax = std::numeric_limits<std::uint64_t>::max();

// The physical address in CR3: without PCID (11:0) and without the bits above the address, which include
// no-flush (63) and linear address masking (62:61).
inline constexpr std::uint64_t kCr3Address = 0x000F'FFFF'FFFF'F000;

struct Space {
  std::int64_t pid = kNoId;
  std::uint64_t cr3 = 0;
  bool cr3_known = false;
  std::uint64_t user_cr3 = 0;  // CR3 of user code with page table isolation; 0: cr3
};

struct Cpu {
  bool known = false;
  bool intel = true;
  std::uint16_t family = 0;
  std::uint16_t model = 0;
  std::uint8_t stepping = 0;
};

// Clock parameters. 0 means not known, unless a comment says otherwise.
struct Clock {
  std::uint32_t tsc_ctc_numerator = 0;    // CPUID 15H EBX
  std::uint32_t tsc_ctc_denominator = 0;  // CPUID 15H EAX
  bool mtc_period_known = false;
  std::uint8_t mtc_period = 0;          // IA32_RTIT_CTL.MTCFreq: one MTC each 2^mtc_period CTC ticks
  std::uint8_t max_nonturbo_ratio = 0;  // MSR_PLATFORM_INFO[15:8]; CBR at TSC speed
  std::uint64_t tsc_hz = 0;
  bool perf_time_known = false;  // perf: ns = time_zero + tsc * time_mult >> time_shift
  std::uint16_t time_shift = 0;
  std::uint32_t time_mult = 0;
  std::uint64_t time_zero = 0;  // wraps modulo 2^64
  // perf: for a counter of fewer than 64 bits, which wraps. time_mask 0: it does not wrap.
  std::uint64_t time_cycles = 0;
  std::uint64_t time_mask = 0;
};

enum class RangeKind : std::uint8_t { OFF = 0, FILTER = 1, TRACE_STOP = 2 };  // ADDRn_CFG
struct AddressRange {
  RangeKind kind = RangeKind::OFF;
  std::uint64_t first = 0;
  std::uint64_t last = 0;  // inclusive
};

// A range of one address space: files lie at other addresses in other processes.
struct SpaceRange {
  SpaceId space = kAnySpace;  // kAnySpace: of all
  AddressRange range;
};

// The meaning of IP payloads of 16 and 32-bit code (CPUID.14H.0:ECX[31], "LIP"). Stored in bundles: append
// only.
enum class IpPayloads : std::uint8_t {
  UNKNOWN = 0,
  LINEAR = 1,     // linear addresses: include the base of the code segment
  EFFECTIVE = 2,  // effective addresses: without the base
};

struct Configuration {
  Cpu cpu;
  Clock clock;
  IpPayloads ip_payloads = IpPayloads::UNKNOWN;
  std::uint32_t cs_base = 0;  // added to IP payloads of 16 and 32-bit code; not part of a recording
  // false: a stream may begin without a PSB; control flow is then known from its first TIP.PGE or FUP with a
  // full IP on. Not part of a recording.
  bool sync = true;
  std::array<AddressRange, 4> ranges;
  std::vector<SpaceRange> space_ranges;  // further ones, in any order
  bool ranges_known = false;             // false: ranges may have been programmed that these lack
  std::uint64_t rtit_ctl = 0;            // IA32_RTIT_CTL as programmed; meaningful if rtit_ctl_known
  bool rtit_ctl_known = false;
};

// How a thread left its processor, by the record of a context switch. Stored in bundles: append only.
enum class Departure : std::uint8_t {
  UNKNOWN = 0,
  WAITS = 1,      // it no longer could run: it sleeps, or has ended
  PREEMPTED = 2,  // it could have gone on
};

// A context switch: this thread ran from `tsc` on, until the next Switch of the stream. tid == kNoId: the
// running thread is not known.
struct Switch {
  std::uint64_t tsc = 0;
  std::int64_t pid = kNoId;
  std::int64_t tid = kNoId;
  SpaceId space = kAnySpace;
  std::uint64_t offset = 0;  // with Stream::switches_by_offset: the switch applies from this stream offset on
  Departure departure = Departure::UNKNOWN;  // of the thread that ran before
};

// Bytes [begin, end) of the stream are preceded by a loss (buffer truncated, ring wrapped, ...).
struct KnownLoss {
  std::uint64_t offset = 0;
  base::Status cause = base::Status::RING_WRAPPED;
  std::uint64_t lost_bytes = 0;  // 0: not known
};

// The contents of a stream.
enum class StreamKind : std::uint8_t {
  PROCESSOR_TRACE = 0,  // packets
  BRANCH_RECORDS = 1,   // an array of BranchRecord (branch_record.h)
};

struct Stream {
  StreamKind kind = StreamKind::PROCESSOR_TRACE;
  std::string name;
  std::int64_t cpu = kNoId;
  std::int64_t pid = kNoId;
  std::int64_t tid = kNoId;
  SpaceId space = kAnySpace;
  TraceBuffer data;
  std::vector<Switch> switches;     // in order; empty: the stream belongs to pid/tid/space above
  bool switches_by_offset = false;  // switches apply at their `offset` in the stream, not at their `tsc`
  std::vector<KnownLoss> losses;    // sorted by offset
};

// A symbol in a file. Files are mapped by file offset, so the offset also gives the symbol's address.
struct SymbolEntry {
  std::string name;               // as in the symbol table, not demangled
  std::uint64_t file_offset = 0;  // file offset of the first byte
  std::uint64_t size = 0;         // bytes; 0: not known
};

// A file of code, for messages and symbols.
struct ImageFile {
  std::string path;
  std::string build_id;                // hex, may be empty
  TraceBuffer contents;                // the whole file if available, else empty
  std::vector<SymbolEntry> symbols;    // symbols in the bundle; used if `contents` is empty
  std::vector<std::uint8_t> unwind{};  // code::bounds::UnwindTable in the bundle; used if `contents` is empty
  std::vector<std::uint8_t> imports{};  // code::image::Imports in the bundle; used if `contents` is empty
  TraceBuffer debug{};                  // an ELF file of its debug sections in the bundle; may be empty
};

// Addresses that a list of symbols names, which is a file with symbols and without code. A file without
// symbols is a module of which only the name is known. Name ranges supply no code and hide none.
struct NameRange {
  SpaceId space = kAnySpace;
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  std::int32_t file = -1;  // index in TraceBundle::files
  std::uint64_t file_offset = 0;
  std::uint64_t tsc_from = kTscMin;  // names in [tsc_from, tsc_to)
  std::uint64_t tsc_to = kTscMax;
  bool is_module = false;  // of JIT code: the file counts as the module of code that no file has
};

// Code bytes at an address. Later regions of the same space and time win over earlier ones.
struct CodeRegion {
  SpaceId space = kAnySpace;
  std::uint64_t address = 0;
  TraceBuffer bytes;  // empty with size > 0: a mapping without bytes
  std::uint64_t size = 0;
  std::uint64_t tsc_from = kTscMin;  // valid in [tsc_from, tsc_to)
  std::uint64_t tsc_to = kTscMax;
  std::int32_t file = -1;  // index in TraceBundle::files
  std::uint64_t file_offset = 0;
  // The bytes are those of the file: other regions of the file with this flag and without bytes use them.
  bool shared = false;
};

struct Thread {
  std::int64_t pid = kNoId;
  std::int64_t tid = kNoId;
  std::string name;
};

// Events that the recorder saw in addition to the trace.
enum class SidebandKind : std::uint8_t {
  PROCESS = 0,  // `parent` created process `pid`
  THREAD = 1,   // process `pid` created thread `tid`
  EXEC = 2,     // `pid` executed program `text`
  MAP = 3,      // `pid` mapped `file` from `file_offset` on at [address, address + size)
  SIGNAL = 4,   // `tid` received signal `value`
  EXIT = 5,     // `tid` ended with exit status `value` (128 + signal if it was killed; -1: not known)
};

struct Sideband {
  SidebandKind kind = SidebandKind::PROCESS;
  std::uint64_t tsc = 0;
  std::int64_t pid = kNoId;
  std::int64_t tid = kNoId;
  std::int64_t parent = kNoId;
  std::int64_t value = 0;
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  std::int32_t file = -1;  // index in TraceBundle::files
  std::uint64_t file_offset = 0;
  std::string text;
};

struct TraceBundle {
  std::string format;  // registry name of the reader
  std::string source;  // path, or a description of the memory
  Configuration configuration;
  std::vector<Space> spaces{Space{}};
  std::vector<Stream> streams;
  std::vector<ImageFile> files;
  std::vector<CodeRegion> code;
  std::vector<NameRange> names;
  std::vector<Thread> threads;
  std::vector<Sideband> sideband;        // sorted by time
  std::string metadata;                  // a JSON object: command line, machine, times, ...; may be empty
  std::vector<trace::Warning> warnings;  // whole sentences: what is odd, and what follows

  // The file with this number; null: none, as of code that no file has.
  [[nodiscard]] const ImageFile* file(std::int32_t number) const noexcept {
    const bool exists = number >= 0 && static_cast<std::size_t>(number) < files.size();
    return exists ? &files[static_cast<std::size_t>(number)] : nullptr;
  }
};

}  // namespace ptkit::trace
