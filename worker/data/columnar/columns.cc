// Keeps batches in order, and finds the batch of a row.
#include "worker/data/columnar/columns.h"

#include <algorithm>
#include <utility>

#include "common/base/outside_text.h"
#include "worker/data/columnar/cell_layout.h"
#include "worker/data/columnar/chunk_check.h"

namespace hdps {
namespace {

bool TypesAreAlike(const CellType& a, const CellType& b) {
  if (a.kind != b.kind || a.scale != b.scale || (a.values == nullptr) != (b.values == nullptr))
    return false;
  return a.values == nullptr || TypesAreAlike(*a.values, *b.values);
}

}  // namespace

Result<std::unique_ptr<ColumnTable>> ColumnTable::FromChunks(std::vector<Column> columns,
                                                             std::vector<ColumnChunk> chunks,
                                                             std::shared_ptr<const void> keeps) {
  std::unique_ptr<ColumnTable> table(new ColumnTable());
  table->columns_ = std::move(columns);
  table->keeps_.push_back(std::move(keeps));
  if (chunks.size() != table->columns_.size()) {
    return Status(Code::kInvalidArgument, std::to_string(chunks.size()) + " chunks for " +
                                              std::to_string(table->columns_.size()) +
                                              " columns: expected as many");
  }
  HDPS_RETURN_IF_ERROR(table->AddBatch(std::move(chunks)));
  return table;
}

Status ColumnTable::AddBatch(std::vector<ColumnChunk> chunks, const ColumnTable* before) {
  const bool has_before = before != nullptr && !before->batches_.empty();
  const int64_t rows = chunks.empty() ? 0 : chunks[0].length;
  for (size_t c = 0; c < chunks.size(); ++c) {
    const std::string column = "column '" + EscapeUntrusted(columns_[c].name) + "': ";
    const bool dictionary = has_before && columns_[c].type.is_dictionary();
    const ColumnChunk* const known = dictionary ? before->batches_.back()[c].values.get() : nullptr;
    if (const Status checked = CheckChunk(columns_[c].type, chunks[c], known); !checked.ok()) {
      return {Code::kInvalidArgument, column + checked.message()};
    }
    if (chunks[c].length == rows) continue;
    return {Code::kInvalidArgument, column + std::to_string(chunks[c].length) +
                                        " cells, but column '" + EscapeUntrusted(columns_[0].name) +
                                        "' has " + std::to_string(rows) + ": expected as many"};
  }
  if (rows == 0) return {};
  if (num_rows() > static_cast<uint64_t>(kCellsMax - rows)) {
    return {Code::kInvalidArgument, "more rows than " + std::to_string(kCellsMax)};
  }
  batches_.push_back(std::move(chunks));
  begins_.push_back(begins_.back() + static_cast<uint64_t>(rows));
  return {};
}

ColumnTable::Place ColumnTable::PlaceOf(uint64_t row, size_t hint) const {
  if (hint + 1 >= begins_.size() || row < begins_[hint] || row >= begins_[hint + 1]) {
    hint = static_cast<size_t>(std::ranges::upper_bound(begins_, row) - begins_.begin()) - 1;
  }
  return {hint, static_cast<int64_t>(row - begins_[hint])};
}

std::shared_ptr<const ColumnTable> ColumnTable::Joined(
    const std::vector<std::shared_ptr<const ColumnTable>>& tables) {
  std::shared_ptr<ColumnTable> all(new ColumnTable());
  all->columns_ = tables.front()->columns_;
  for (const std::shared_ptr<const ColumnTable>& table : tables) all->AddBatchesOf(table);
  return all;
}

void ColumnTable::AddBatchesOf(std::shared_ptr<const ColumnTable> table) {
  for (size_t batch = 0; batch < table->batches_.size(); ++batch) {
    const uint64_t rows = table->begins_[batch + 1] - table->begins_[batch];
    batches_.push_back(table->batches_[batch]);
    begins_.push_back(begins_.back() + rows);
  }
  keeps_.push_back(std::move(table));
}

bool AreAlike(const std::vector<ColumnTable::Column>& a,
              const std::vector<ColumnTable::Column>& b) {
  return std::ranges::equal(a, b, [](const ColumnTable::Column& x, const ColumnTable::Column& y) {
    return x.name == y.name && TypesAreAlike(x.type, y.type);
  });
}

}  // namespace hdps
