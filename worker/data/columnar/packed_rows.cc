// Packs a block of rows column by column.
#include "worker/data/columnar/packed_rows.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/hash.h"
#include "worker/data/columnar/cell_layout.h"
#include "worker/data/columnar/table_files.h"
#include "worker/data/number.h"
#include "worker/data/row.h"

namespace hdps {
namespace {

constexpr uint64_t kBlockRowsMax = 64;
constexpr uint64_t kBlockBytes = 64 << 10;  // Stays in a core's cache.

// Returns true if all cells are one: indices to a single value, as a request sends a user beside
// many items.
bool IsShared(const ColumnChunk& chunk) {
  return chunk.validity == nullptr && chunk.values != nullptr && chunk.values->length == 1;
}

}  // namespace

PackedRows::PackedRows(std::shared_ptr<const ColumnTable> table, std::vector<PackedColumn> columns,
                       std::string missing)
    : table_(std::move(table)),
      columns_(std::move(columns)),
      missing_(std::move(missing)),
      missing_is_number_(ParseNumber(missing_).has_value()),
      begins_{kRowNumberBytes} {
  for (const PackedColumn& column : columns_) {
    const CellType& type = table_->columns()[column.index].type;
    size_t bytes = 0;
    if (column.form == PackedForm::kNumber || column.form == PackedForm::kKey) bytes = 8;
    if (column.form == PackedForm::kCell) bytes = CellBytesOf(type) + 1;
    begins_.push_back(begins_.back() + bytes);
  }
  block_rows_ = std::clamp<uint64_t>(kBlockBytes / begins_.back(), 1, kBlockRowsMax);
}

void PackedRows::UseTable(std::shared_ptr<const ColumnTable> table) {
  table_ = std::move(table);
  count_ = 0;
  batch_ = 0;
}

size_t PackedRows::CellBytesOf(const CellType& type) {
  if (type.is_dictionary()) return 0;
  if (type.kind == CellKind::kBool) return 1;
  return IsInteger(type.kind) || IsFloat(type.kind) ? CellBytes(type.kind) : 0;
}

bool PackedRows::IsPacked(std::string_view line) const {
  return line.size() == begins_.back() && line.size() > kRowNumberBytes;
}

std::string_view PackedRows::Pack(uint64_t row) {
  if (row - first_ >= count_) PackBlock(row);
  return {bytes_.data() + (row - first_) * begins_.back(), begins_.back()};
}

void PackedRows::PackBlock(uint64_t row) {
  const ColumnTable::Place place = table_->PlaceOf(row, batch_);
  const int64_t left = table_->chunk(place.batch, 0).length - place.index;
  bytes_.resize(block_rows_ * begins_.back());
  batch_ = place.batch;
  first_ = row;
  count_ = std::min(block_rows_, static_cast<uint64_t>(left));
  for (uint64_t r = 0; r < count_; ++r) {
    const uint64_t number = row + r;
    std::memcpy(bytes_.data() + r * begins_.back(), &number, kRowNumberBytes);
  }
  for (size_t c = 0; c < columns_.size(); ++c) {
    PackColumn(c, table_->chunk(place.batch, columns_[c].index), place.index);
  }
}

template <typename Value>
void PackedRows::StoreEach(size_t c, const ColumnChunk& chunk, int64_t index, const Value& value) {
  char* to = bytes_.data() + begins_[c];
  const bool shared = IsShared(chunk);
  auto stored = value(index);
  for (uint64_t r = 0; r < count_; ++r, to += begins_.back()) {
    if (r > 0 && !shared) stored = value(index + static_cast<int64_t>(r));
    std::memcpy(to, &stored, sizeof(stored));
  }
}

void PackedRows::PackColumn(size_t c, const ColumnChunk& chunk, int64_t index) {
  const PackedColumn& column = columns_[c];
  switch (column.form) {
    case PackedForm::kNumber:
      return StoreEach(c, chunk, index,
                       [&](int64_t cell) { return NumberOf(column.reader, chunk, cell); });
    case PackedForm::kKey:
      return StoreEach(c, chunk, index, [&](int64_t cell) { return KeyOf(column, chunk, cell); });
    case PackedForm::kInPlace:
      return;
    case PackedForm::kCell:
      break;
  }
  const CellKind kind = table_->columns()[column.index].type.kind;
  const size_t bytes = begins_[c + 1] - begins_[c] - 1;
  char* to = bytes_.data() + begins_[c];
  for (uint64_t r = 0; r < count_; ++r, to += begins_.back()) {
    const int64_t cell = index + static_cast<int64_t>(r);
    to[bytes] = static_cast<char>(HasCell(chunk, cell));
    if (to[bytes] == 0) {
      std::memset(to, 0, bytes);
      continue;
    }
    if (kind == CellKind::kBool) {
      to[0] = static_cast<char>(BitAt(chunk, cell));
      continue;
    }
    const auto at = static_cast<size_t>(chunk.first + cell) * bytes;
    std::memcpy(to, static_cast<const char*>(chunk.cells) + at, bytes);
  }
}

double PackedRows::NumberOf(const CellReader& reader, const ColumnChunk& chunk, int64_t index) {
  double number = 0;
  if (!reader.Number(chunk, index, &number)) return kMissingNumber;
  std::string_view text;
  const bool missing =
      missing_is_number_ && reader.Text(chunk, index, &text_, &text) && text == missing_;
  return missing ? kMissingNumber : number;
}

uint64_t PackedRows::KeyOf(const PackedColumn& column, const ColumnChunk& chunk, int64_t index) {
  std::string_view text;
  if (!column.reader.Text(chunk, index, &text_, &text)) text = {};
  text = TrimmedCell(text);
  return FeatureKey(column.salt, text == missing_ ? std::string_view() : text);
}

}  // namespace hdps
