// Computes the vectors of a two_tower model for rows in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/platform/executor.h"
#include "tools/scoring/row_scorer.h"
#include "tools/scoring/towers/tower_vectors.h"
#include "worker/data/columnar/columns.h"

namespace hdps {

// The vectors of one tower for tables that have its columns alone. For use by one thread; several
// may share the scorer.
class TableVectors {
 public:
  // kInvalidArgument if the model is not of the recipe two_tower. Requires: `scorer` and `executor`
  // outlive the result.
  static Result<std::unique_ptr<TableVectors>> New(RowScorer& scorer, Tower tower,
                                                   Executor& executor);

  ~TableVectors();

  uint32_t dim() const { return tower_->dim(); }
  // Returns the data section of rows with the columns that the tower reads.
  const DataSpec& columns() const { return *columns_; }
  Clock step() const { return tower_->step(); }
  // Returns the vectors of all rows, [rows, dim]: see TowerVectors::Of. kInvalidArgument names a
  // column that is missing, or the first row, from 0 on, that cannot be read.
  Result<std::vector<float>> Of(std::shared_ptr<const ColumnTable> table);

 private:
  TableVectors();

  std::unique_ptr<TowerVectors> tower_;
  std::unique_ptr<const DataSpec> columns_;
};

}  // namespace hdps
