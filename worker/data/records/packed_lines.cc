// Goes through a few rows column by column, and then writes them row by row.
#include "worker/data/records/packed_lines.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "common/base/hash.h"
#include "worker/data/columnar/cell_layout.h"
#include "worker/data/row.h"

namespace hdps {
namespace {

uint64_t BitsOfNumber(double number) {
  uint64_t bits;
  std::memcpy(&bits, &number, sizeof(bits));
  return bits;
}

}  // namespace

PackedColumn::PackedColumn(const CellType& type, const PackedOrder::Place& place,
                           const std::string& missing)
    : kind_(type.kind),
      key_(place.form == PackedOrder::Form::kKey),
      salt_(place.salt),
      missing_text_(missing),
      cells_(type),
      values_(type.is_dictionary() ? std::optional<CellReader>(*type.values) : std::nullopt),
      missing_(key_ ? FeatureKey(salt_, "") : BitsOfNumber(kMissingNumber)) {}

bool PackedColumn::HasNumbers(const CellType& type) {
  return type.kind == CellKind::kNull || CellReader(type).has_numbers();
}

uint64_t PackedColumn::KeyOf(std::string_view text) const {
  text = TrimmedCell(text);
  return text.empty() || text == missing_text_ ? missing_ : FeatureKey(salt_, text);
}

uint64_t PackedColumn::BitsOf(const CellReader& reader, const ColumnChunk& chunk,
                              int64_t index) const {
  if (key_) {
    CellText memory;
    std::string_view text;
    return reader.Text(chunk, index, &memory, &text) ? KeyOf(text) : missing_;
  }
  double number = 0;
  // Without the sign of -0, as in text.
  return reader.has_numbers() && reader.Number(chunk, index, &number) ? BitsOfNumber(number + 0.0)
                                                                      : missing_;
}

void PackedColumn::UseDictionary(const ColumnChunk& chunk) {
  if (!values_.has_value() || chunk.values == dictionary_) return;
  dictionary_ = chunk.values;
  of_value_.resize(static_cast<size_t>(dictionary_->length));
  for (int64_t i = 0; i < dictionary_->length; ++i) {
    of_value_[static_cast<size_t>(i)] = BitsOf(*values_, *dictionary_, i);
  }
}

void PackedColumn::WriteDictionary(const ColumnChunk& chunk, int64_t begin, int64_t end, char* to,
                                   size_t stride) const {
  for (int64_t i = begin; i < end; ++i, to += stride) {
    const uint64_t bits =
        HasCell(chunk, i) ? of_value_[static_cast<size_t>(CellAt<uint32_t>(chunk, i))] : missing_;
    std::memcpy(to, &bits, sizeof(bits));
  }
}

void PackedColumn::Write(const ColumnChunk& chunk, int64_t begin, int64_t end, char* to,
                         size_t stride) {
  if (values_.has_value() && CellBytes(kind_) == sizeof(uint32_t)) {
    return WriteDictionary(chunk, begin, end, to, stride);
  }
  for (int64_t i = begin; i < end; ++i, to += stride) {
    const uint64_t bits = BitsOf(cells_, chunk, i);
    std::memcpy(to, &bits, sizeof(bits));
  }
}

std::optional<PackedLines> PackedLines::Make(const std::vector<ColumnTable::Column>& columns,
                                             const std::vector<uint32_t>& index_of_cell,
                                             const PackedOrder& order) {
  PackedLines lines(order.bytes());
  lines.absent_.resize(order.bytes());
  lines.absent_[0] = static_cast<char>(CellTag::kPacked);
  const CellType missing{CellKind::kNull, nullptr, ""};
  std::vector<uint32_t> others;
  for (size_t c = 0; c < index_of_cell.size(); ++c) {
    const PackedOrder::Place& place = order.places()[c];
    const uint32_t index = index_of_cell[c];
    if (place.form == PackedOrder::Form::kCell) {
      others.push_back(index);
      continue;
    }
    const bool absent = index == CellOrder::kAbsent;
    const CellType& type = absent ? missing : columns[index].type;
    if (place.form == PackedOrder::Form::kNumber && !PackedColumn::HasNumbers(type)) {
      return std::nullopt;
    }
    PackedColumn column(type, place, order.missing());
    if (absent) {
      column.Write({.length = 1}, 0, 1, lines.absent_.data() + place.offset, 0);
    } else {
      lines.packed_.push_back({index, place.offset, std::move(column)});
    }
  }
  lines.others_.emplace(columns, others);
  return lines;
}

Status PackedLines::Add(const ColumnTable& table, int64_t begin, int64_t end,
                        CellLineWriter* lines) {
  block_.resize(bytes_ * static_cast<size_t>(end - begin));
  for (size_t at = 0; at < block_.size(); at += bytes_) {
    std::memcpy(block_.data() + at, absent_.data(), bytes_);
  }
  for (Packed& packed : packed_) {
    const ColumnChunk& chunk = table.chunk(0, packed.column);
    packed.cells.UseDictionary(chunk);
    packed.cells.Write(chunk, begin, end, block_.data() + packed.offset, bytes_);
  }
  return others_->Add(table, begin, end, lines, block_.data(), bytes_);
}

}  // namespace hdps
