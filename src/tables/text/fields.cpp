#include "tables/text/fields.h"

#include <algorithm>
#include <array>
#include <bit>

#include "tables/text/block_field.h"
#include "tables/text/field_keys.h"

namespace ptkit::tables::text {
namespace {

// Fields with texts that are kept by their values, and a block of their keys.
class FieldGroup {
 public:
  // `blocks` are the group's fields.
  FieldGroup(const Group& group, std::span<const Field> fields, std::span<BlockField> blocks)
      : texts_(group.texts->cache), blocks_(blocks), keys_(fields) {
    if (keys_.fits() && group.texts->layout != keys_.layout()) *group.texts = {keys_.layout()};
  }

  [[nodiscard]] bool fits() const noexcept { return keys_.fits(); }
  void load(std::size_t first, std::size_t rows) {
    first_ = first;
    keys_.read(first, std::span(row_keys_).first(rows));
  }
  void write(TextBuffer& out, std::size_t row) {
    const TextCache::Key& key = row_keys_[row - first_];
    const TextCache::Ref* const found = texts_.find(key);
    if (found == nullptr) return make(out, row, key);
    out.add_padded(texts_.text_of(*found), found->size);
  }

 private:
  void make(TextBuffer& out, std::size_t row, const TextCache::Key& key) {
    const std::size_t begin = out.size();
    bool same = true;
    for (BlockField& field : blocks_) {
      field.load(row, 1);
      same &= field.write(out, row);
    }
    if (!same) return;
    texts_.reserve();
    texts_.insert(key, texts_.store(out.view().substr(begin)));
  }

  TextCache& texts_;
  std::span<BlockField> blocks_;
  FieldKeys keys_;
  std::size_t first_ = 0;  // row of the first key
  std::array<TextCache::Key, kBlockRows> row_keys_;
};

constexpr std::size_t kOutputBytes = std::size_t{1} << 17U;  // that are given out at once
constexpr std::size_t kMostUnits = 64;                       // as many as a mask has bits

class LineWriter {
 public:
  LineWriter(const Lines& lines, std::span<const Note> notes, TextBuffer& out, const Output& output)
      : lines_(lines),
        notes_(notes),
        fields_(lines.fields.begin(), lines.fields.end()),
        out_(out),
        output_(output) {
    groups_.reserve(lines.groups.size());
    std::size_t done = 0;
    for (const Group& group : lines.groups) {
      const std::size_t count = group.end - group.begin;
      FieldGroup& last = groups_.emplace_back(group, std::span(lines.fields).subspan(group.begin, count),
                                              std::span(fields_).subspan(group.begin, count));
      if (!last.fits()) continue;
      add_units(done, group.begin);
      units_.push_back({nullptr, &last});
      done = group.end;
    }
    add_units(done, fields_.size());
    starts_.resize(units_.size() + 1);
  }

  void write() {
    out_.clear();
    for (std::size_t first = 0; first < lines_.rows; first += kBlockRows) {
      write_block(first, std::min(kBlockRows, lines_.rows - first));
    }
    write_notes(lines_.rows);
    if (out_.size() != 0) output_(out_.view());
  }

 private:
  // Fields that are written at once: one field, or a group.
  struct Unit {
    BlockField* field = nullptr;
    FieldGroup* group = nullptr;
  };

  void add_units(std::size_t begin, std::size_t end) {
    for (; begin < end; ++begin) units_.push_back({&fields_[begin], nullptr});
  }

  void write_block(std::size_t first, std::size_t rows) {
    masks_.fill(0);
    for (std::size_t unit = 0; unit < units_.size(); ++unit) {
      const auto [field, group] = units_[unit];
      if (group != nullptr) {
        group->load(first, rows);
        continue;
      }
      field->load(first, rows);
      if (unit < kMostUnits) field->mark_repeated(rows, std::uint64_t{1} << unit, masks_);
    }
    can_copy_ = false;
    for (std::size_t row = 0; row < rows; ++row) {
      write_notes(first + row);
      if (!lines_.shown.empty() && !lines_.shown[first + row]) {
        can_copy_ = false;
        continue;
      }
      write_line(first + row, can_copy_ ? masks_[row] : 0);
      if (out_.size() >= kOutputBytes) give_out();
    }
  }

  // `same` are the units that the line before has, too.
  void write_line(std::size_t row, std::uint64_t same) {
    const std::size_t begin = out_.size();
    for (std::size_t unit = 0; unit < units_.size();) {
      const std::uint64_t from_here = unit < kMostUnits ? same >> unit : 0;
      if ((from_here & 1U) != 0) {
        const std::size_t end =
            std::min(unit + static_cast<std::size_t>(std::countr_one(from_here)), units_.size());
        const std::size_t moved = out_.size() - starts_[unit];
        out_.repeat(starts_[unit], starts_[end] - starts_[unit]);
        for (; unit < end; ++unit) starts_[unit] += moved;
      } else {
        starts_[unit] = out_.size();
        const auto [field, group] = units_[unit];
        if (group != nullptr) {
          group->write(out_, row);
        } else {
          field->write(out_, row);
        }
        ++unit;
      }
    }
    starts_.back() = out_.size();
    if (lines_.strip) out_.strip(begin);
    can_copy_ = out_.size() == starts_.back();
    out_.add('\n');
  }

  void write_notes(std::size_t row) {
    for (; next_note_ < notes_.size() && notes_[next_note_].first <= row; ++next_note_) {
      out_.add(notes_[next_note_].second);
      out_.add('\n');
      if (out_.size() >= kOutputBytes) give_out();
    }
  }

  void give_out() {
    output_(out_.view());
    out_.clear();
    can_copy_ = false;
  }

  const Lines& lines_;
  std::span<const Note> notes_;
  std::size_t next_note_ = 0;
  std::vector<BlockField> fields_;
  std::vector<FieldGroup> groups_;
  std::vector<Unit> units_;
  std::vector<std::size_t> starts_;              // of the units of the last line, and their end
  bool can_copy_ = false;                        // units of the last line
  std::array<std::uint64_t, kBlockRows> masks_;  // units that are those of the row before, by row
  TextBuffer& out_;
  const Output& output_;
};

}  // namespace

void write_lines(const Lines& lines, std::span<const Note> notes, TextBuffer& buffer, const Output& output) {
  LineWriter(lines, notes, buffer, output).write();
}

}  // namespace ptkit::tables::text
