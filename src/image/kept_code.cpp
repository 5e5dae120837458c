#include "image/kept_code.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check_sum.h"

namespace ptkit::image {
namespace {

using base::check_sum;
using base::mix;
using insn::ExecMode;
using insn::Insn;
using insn::InsnClass;

constexpr std::uint64_t kMagic = 0x0045'444F'434B'5450;  // "PTKCODE"
constexpr std::uint32_t kFormat = 1;
constexpr std::uint32_t kDecoder = 1;  // counts changes of what insn::decode() gives
constexpr std::size_t kPageLines = 64;
constexpr std::size_t kUnit = 16;
constexpr std::uint64_t kMostPages = 1U << 18U;  // of a file: 1 GiB

// All integers are little-endian, as on every machine that has this trace unit.
struct Header {
  std::uint64_t magic = kMagic;
  std::uint32_t format = kFormat;
  std::uint32_t decoder = kDecoder;
  std::uint64_t size = 0;      // of the file
  std::uint64_t build_id = 0;  // hash of its text
  std::uint64_t first_page = 0;
  std::uint32_t pages = 0;  // in the table behind the header
  std::uint32_t mode = 0;
  std::uint64_t unused = 0;
  std::uint64_t check_sum = 0;  // of the table, and of the header with 0 here
};
static_assert(sizeof(Header) == 64);

struct PageHeader {
  std::uint64_t lines = 0;      // bit by line; those that are there follow, in order
  std::uint64_t check_sum = 0;  // of the lines
};
static_assert(sizeof(PageHeader) == kUnit && sizeof(KeptLine) % kUnit == 0 && alignof(KeptLine) == 1);

std::uint64_t hash_of(const std::string& text) noexcept {
  return check_sum({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

constexpr std::size_t padded(std::size_t size) noexcept { return (size + kUnit - 1) / kUnit * kUnit; }

template <typename T>
T read(base::Bytes from) noexcept {
  T value;
  std::memcpy(&value, from.data(), sizeof(T));
  return value;
}

template <typename T>
void put(std::vector<std::uint8_t>& to, std::size_t at, const T& value) noexcept {
  std::memcpy(to.data() + at, &value, sizeof(T));
}

std::uint64_t header_sum(Header header, base::Bytes table) noexcept {
  header.check_sum = 0;
  return mix(check_sum({reinterpret_cast<const std::uint8_t*>(&header), sizeof(header)}), check_sum(table));
}

// What an entry says besides the size. Near branches whose displacement fills the last byte or the last four.
// Anything else (far transfers, instructions that events bind to, 16-bit displacements) is decoded again.
enum class Form : std::uint8_t { PLAIN, COND8, COND32, JUMP8, JUMP32, CALL32, RETURN, JUMP_IND, CALL_IND };
constexpr std::size_t kForms = 9;
constexpr std::array<InsnClass, kForms> kFormClass = {
    InsnClass::OTHER,  InsnClass::COND_JUMP,     InsnClass::COND_JUMP,
    InsnClass::JUMP,   InsnClass::JUMP,          InsnClass::CALL,
    InsnClass::RETURN, InsnClass::JUMP_INDIRECT, InsnClass::CALL_INDIRECT};
// Bytes of the shortest instruction of each form.
constexpr std::array<std::uint8_t, kForms> kFormLeast = {1, 2, 6, 2, 5, 5, 1, 2, 2};

// `code` has `size` bytes. String instructions and XBEGIN have no form, so that the other fields follow.
void read_form(Form form, ExecMode mode, const std::uint8_t* code, std::size_t size, Insn& out) noexcept {
  out = Insn{};
  out.size = static_cast<std::uint8_t>(size);
  out.cls = kFormClass[static_cast<std::size_t>(form)];
  const bool is_short = form == Form::COND8 || form == Form::JUMP8;
  if (!is_short && form != Form::COND32 && form != Form::JUMP32 && form != Form::CALL32) return;
  const std::uint64_t bits = is_short ? code[size - 1] : base::load_le<4>(code + size - 4);
  const unsigned unused = is_short ? 56 : 32;
  out.displacement = static_cast<std::int64_t>(bits << unused) >> unused;
  out.target_bits = static_cast<std::uint8_t>(mode);
}

bool equal(const Insn& a, const Insn& b) noexcept {
  return a.size == b.size && a.cls == b.cls && a.kind == b.kind && a.rep == b.rep &&
         a.target_bits == b.target_bits && a.displacement == b.displacement && a.absolute == b.absolute;
}

// 0 if no form gives the instruction back.
std::uint8_t entry_of(const Insn& insn, ExecMode mode, base::Bytes code) noexcept {
  if (!KeptLine::fits(insn)) return 0;
  for (std::size_t form = 0; form < kForms; ++form) {
    if (kFormClass[form] != insn.cls || insn.size < kFormLeast[form]) continue;
    Insn again;
    read_form(static_cast<Form>(form), mode, code.data(), insn.size, again);
    if (equal(again, insn)) return static_cast<std::uint8_t>(insn.size | form << 4);
  }
  return 0;
}

}  // namespace

bool KeptLine::recall(std::uint64_t offset, ExecMode mode, base::Bytes now, Insn& out) const noexcept {
  const std::size_t at = offset % kBytes;
  const std::size_t size = entries[at] & 15U;
  const std::size_t form = entries[at] >> 4;
  if (size == 0 || size > now.size() || form >= kForms || size < kFormLeast[form]) return false;
  std::array<std::uint8_t, kCompared> padded{};
  const std::uint8_t* bytes = now.data();
  if (now.size() < kCompared) {
    std::memcpy(padded.data(), now.data(), now.size());
    bytes = padded.data();
  }
  const std::uint8_t* kept = code.data() + at;
  const std::uint64_t low = base::load_le<8>(kept) ^ base::load_le<8>(bytes);
  const std::uint64_t high = base::load_le<8>(kept + 8) ^ base::load_le<8>(bytes + 8);
  const bool same = size <= 8 ? low << (64 - 8 * size) == 0 : low == 0 && high << (128 - 8 * size) == 0;
  if (!same) return false;
  read_form(static_cast<Form>(form), mode, now.data(), size, out);
  return true;
}

base::Result<std::unique_ptr<KeptCode>> KeptCode::open(const std::string& path, const std::string& build_id,
                                                       ExecMode mode) {
  auto mapped = trace::TraceBuffer::map_file(path);
  if (!mapped.ok()) return mapped.failure();
  const base::Bytes bytes = mapped.value().bytes();
  const base::Failure damaged{base::Status::BAD_FILE, 0, path + ": damaged, or of another version"};
  if (bytes.size() < sizeof(Header)) return damaged;
  const auto header = read<Header>(bytes);
  if (header.magic != kMagic || header.format != kFormat || header.decoder != kDecoder) return damaged;
  if (header.size != bytes.size() || header.mode != static_cast<std::uint32_t>(mode)) return damaged;
  if (header.build_id != hash_of(build_id) || header.pages > kMostPages || header.first_page > kMostPages)
    return damaged;
  const std::size_t table_size = header.pages * sizeof(std::uint32_t);
  if (padded(table_size) > bytes.size() - sizeof(Header)) return damaged;
  std::unique_ptr<KeptCode> kept(new KeptCode(mapped.value(), mode));
  kept->table_ = bytes.subspan(sizeof(Header), table_size);
  if (header.check_sum != header_sum(header, bytes.subspan(sizeof(Header), padded(table_size))))
    return damaged;
  kept->first_page_ = header.first_page;
  kept->checks_ = std::make_unique<std::atomic<Check>[]>(header.pages);
  return kept;
}

bool KeptCode::has_page(std::size_t page) const noexcept {
  std::atomic<Check>& check = checks_[page];
  const Check known = check.load(std::memory_order_relaxed);
  if (known != Check::NOT_YET) return known == Check::GOOD;
  const std::size_t at = base::load_le<4>(table_.data() + page * 4) * kUnit;
  const std::size_t size = file_.size();
  bool good = at >= sizeof(Header) && at <= size && size - at >= sizeof(PageHeader);
  if (good) {
    const auto header = read<PageHeader>(file_.bytes().subspan(at));
    const std::size_t lines = static_cast<std::size_t>(std::popcount(header.lines)) * sizeof(KeptLine);
    const std::size_t begin = at + sizeof(PageHeader);
    good = lines <= size - begin && check_sum(file_.bytes().subspan(begin, lines)) == header.check_sum;
  }
  check.store(good ? Check::GOOD : Check::DAMAGED, std::memory_order_relaxed);
  return good;
}

const KeptLine* KeptCode::line(std::uint64_t offset) const noexcept {
  const std::uint64_t number = offset / KeptLine::kBytes;
  const std::uint64_t page = number / kPageLines - first_page_;
  if (page >= table_.size() / 4 || !has_page(static_cast<std::size_t>(page))) return nullptr;
  const std::size_t at = base::load_le<4>(table_.data() + page * 4) * kUnit;
  const std::uint8_t* record = file_.bytes().data() + at;
  const std::uint64_t lines = base::load_le<8>(record);
  const std::uint64_t bit = std::uint64_t{1} << (number % kPageLines);
  if ((lines & bit) == 0) return nullptr;
  const auto before = static_cast<std::size_t>(std::popcount(lines & (bit - 1)));
  // Bytes without alignment or padding: whatever is there is a line.
  return reinterpret_cast<const KeptLine*>(record + sizeof(PageHeader)) + before;
}

std::vector<std::uint64_t> KeptCode::lines() const {
  std::vector<std::uint64_t> numbers;
  for (std::size_t page = 0; page < table_.size() / 4; ++page) {
    if (!has_page(page)) continue;
    const std::size_t at = base::load_le<4>(table_.data() + page * 4) * kUnit;
    const std::uint64_t lines = base::load_le<8>(file_.bytes().data() + at);
    for (std::size_t line = 0; line < kPageLines; ++line) {
      if ((lines >> line & 1) != 0) numbers.push_back((first_page_ + page) * kPageLines + line);
    }
  }
  return numbers;
}

KeptLines::Line& KeptLines::line(std::uint64_t number) {
  if (last_ == nullptr || number != last_number_) {
    last_ = &lines_[number];
    last_number_ = number;
  }
  return *last_;
}

void KeptLines::add(std::uint64_t offset, base::Bytes code) {
  const std::uint64_t number = offset / KeptLine::kBytes;
  if (number / kPageLines >= kMostPages) return;
  const std::size_t at = offset % KeptLine::kBytes;
  if (last_ != nullptr && number == last_number_ && last_->kept.entries[at] != 0) return;
  Insn insn;
  if (insn::decode(mode_, code, insn) != base::Status::OK) return;
  const std::uint8_t entry = entry_of(insn, mode_, code);
  if (entry == 0) return;
  Line& line = this->line(number);
  if (line.kept.entries[at] != 0) return;
  for (std::size_t i = 0; i < insn.size; ++i) {
    if (line.known[at + i] && line.kept.code[at + i] != code[i]) return;
  }
  for (std::size_t i = 0; i < insn.size; ++i) {
    line.known[at + i] = true;
    line.kept.code[at + i] = code[i];
  }
  line.kept.entries[at] = entry;
  ++instructions_;
}

void KeptLines::add_all(const KeptCode& kept) {
  for (const std::uint64_t number : kept.lines()) {
    const std::uint64_t offset = number * KeptLine::kBytes;
    const KeptLine* line = kept.line(offset);
    for (std::size_t at = 0; at < KeptLine::kBytes; ++at) {
      if (line->entries[at] != 0)
        add(offset + at, base::Bytes(line->code).subspan(at, line->entries[at] & 15U));
    }
  }
}

std::vector<std::uint64_t> KeptLines::numbers() const {
  std::vector<std::uint64_t> numbers;
  numbers.reserve(lines_.size());
  for (const auto& [number, line] : lines_) {
    (void)line;
    numbers.push_back(number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

std::vector<std::uint8_t> KeptLines::file_bytes(const std::string& build_id) const {
  const std::vector<std::uint64_t> sorted = numbers();
  Header header;
  header.build_id = hash_of(build_id);
  header.mode = static_cast<std::uint32_t>(mode_);
  if (!sorted.empty()) {
    header.first_page = sorted.front() / kPageLines;
    header.pages = static_cast<std::uint32_t>(sorted.back() / kPageLines - header.first_page + 1);
  }
  const std::size_t table_size = header.pages * sizeof(std::uint32_t);
  std::vector<std::uint8_t> out(sizeof(Header) + padded(table_size));
  for (std::size_t i = 0; i < sorted.size();) {
    const std::uint64_t page = sorted[i] / kPageLines;
    const std::size_t at = out.size();
    put(out, sizeof(Header) + (page - header.first_page) * 4, static_cast<std::uint32_t>(at / kUnit));
    PageHeader record;
    out.resize(at + sizeof(PageHeader));
    for (; i < sorted.size() && sorted[i] / kPageLines == page; ++i) {
      record.lines |= std::uint64_t{1} << (sorted[i] % kPageLines);
      out.resize(out.size() + sizeof(KeptLine));
      put(out, out.size() - sizeof(KeptLine), lines_.at(sorted[i]).kept);
    }
    record.check_sum = check_sum(base::Bytes(out).subspan(at + sizeof(PageHeader)));
    put(out, at, record);
  }
  header.size = out.size();
  header.check_sum = header_sum(header, base::Bytes(out).subspan(sizeof(Header), padded(table_size)));
  put(out, 0, header);
  return out;
}

}  // namespace ptkit::image
