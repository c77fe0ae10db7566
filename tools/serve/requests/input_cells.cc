// Puts cells behind each other, and shares one row with all.
#include "tools/serve/requests/input_cells.h"

#include <limits>
#include <memory>
#include <numeric>
#include <utility>

#include "tools/serve/requests/request_place.h"

namespace hdps {
namespace {

// Index of the one value of all rows.
constexpr uint8_t kZeros[kRequestRowsMax] = {};

std::shared_ptr<const CellType> Shared(CellType type) {
  return std::make_shared<const CellType>(std::move(type));
}

}  // namespace

InputCells::InputCells(std::string name, CellKind kind, std::string datatype)
    : name_(std::move(name)), kind_(kind), datatype_(std::move(datatype)) {
  if (kind_ == CellKind::kText) offsets_.push_back(0);
}

void InputCells::Reserve(uint64_t cells) {
  constexpr size_t kUsualBytes = 8;  // Of a text.
  if (kind_ != CellKind::kText) return numbers_.reserve(cells);
  offsets_.reserve(cells + 1);
  bytes_.reserve(cells * kUsualBytes);
}

void InputCells::AddMissing() {
  ++missing_;
  if (kind_ == CellKind::kText) return AddText({});
  if (kind_ == CellKind::kFloat64) return AddNumber(std::numeric_limits<double>::quiet_NaN());
  const uint64_t cell = count_;
  validity_.resize(cell / 8 + 1, 0xff);
  validity_[cell / 8] &= static_cast<uint8_t>(~(1u << cell % 8));
  AddNumber(uint64_t{0});
}

bool InputCells::MakeLists() {
  if (has_lists()) return true;
  if (missing_ < count_) return false;
  list_ends_.assign(count_ + 1, 0);
  if (kind_ == CellKind::kText) offsets_.resize(1);
  numbers_.clear();
  validity_.clear();
  count_ = 0;
  return true;
}

void InputCells::SplitIntoLists(uint64_t width) {
  for (uint64_t end = 0; end <= count_; end += width) {
    list_ends_.push_back(static_cast<int32_t>(end));
  }
}

void InputCells::TakeInPlace(const char* numbers, uint64_t count) {
  in_place_ = numbers;
  count_ = count;
}

ColumnChunk InputCells::Values() const {
  ColumnChunk values;
  values.length = static_cast<int64_t>(count_);
  if (!validity_.empty()) values.validity = validity_.data();
  values.cells = numbers_.data();
  if (in_place_ != nullptr) values.cells = in_place_;
  if (kind_ == CellKind::kText) values.cells = offsets_.data();
  values.bytes = bytes_.data();
  return values;
}

Status InputCells::MakeColumn(uint64_t rows, ColumnTable::Column* column, ColumnChunk* chunk) {
  column->name = name_;
  const CellType cells = {kind_, nullptr, datatype_};
  const bool share = rows > 1 && this->rows() == 1;
  if (!share && !has_lists()) {
    column->type = cells;
    *chunk = Values();
    return {};
  }
  chunk->length = static_cast<int64_t>(rows);
  chunk->values = std::make_shared<const ColumnChunk>(Values());
  if (share && has_lists()) return ShareList(rows, column, chunk);
  if (share) {
    column->type = {CellKind::kUint8, Shared(cells), datatype_};
    chunk->cells = kZeros;
  } else {
    column->type = {CellKind::kList, Shared(cells), "list of " + datatype_};
    chunk->cells = list_ends_.data();
  }
  return {};
}

Status InputCells::ShareList(uint64_t rows, ColumnTable::Column* column, ColumnChunk* chunk) {
  // A list cannot be in a dictionary, so its values are: each row has their indices.
  constexpr uint64_t kSharedMax = kRequestBytesMax / sizeof(uint32_t);
  if (count_ > kSharedMax / rows) {
    return {Code::kResourceExhausted,
            InputPlace(name_).Text() + " has " + std::to_string(count_) + " values for each of " +
                std::to_string(rows) + " rows: expected at most " +
                std::to_string(kSharedMax / rows) + "; send fewer rows a request"};
  }
  ColumnChunk indices;
  indices.length = static_cast<int64_t>(rows * count_);
  indices.values = chunk->values;
  shared_.resize(rows * count_ + 1);  // Not empty, so that there is a buffer.
  for (uint64_t row = 0; row < rows; ++row) {
    const auto begin = shared_.begin() + static_cast<ptrdiff_t>(row * count_);
    std::iota(begin, begin + static_cast<ptrdiff_t>(count_), 0u);
  }
  indices.cells = shared_.data();
  list_ends_.resize(1);
  for (uint64_t row = 1; row <= rows; ++row) {
    list_ends_.push_back(static_cast<int32_t>(row * count_));
  }
  const CellType cells = {kind_, nullptr, datatype_};
  column->type = {CellKind::kList, Shared({CellKind::kUint32, Shared(cells), datatype_}),
                  "list of " + datatype_};
  chunk->values = std::make_shared<const ColumnChunk>(std::move(indices));
  chunk->cells = list_ends_.data();
  return {};
}

}  // namespace hdps
