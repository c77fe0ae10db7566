// Lays columns of rows into the sections of a PredictRequest, and reads them there as a table.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/protocol/predict/predict_messages.h"
#include "worker/data/columnar/columns.h"

namespace hdps {

// Columns whose cells are to be sent: see SentColumn.
struct SentCells {
  uint32_t rows = 0;
  std::vector<SentColumn> columns;
  std::vector<uint32_t> ends;
  std::string texts;
  std::vector<int64_t> integers;
  std::vector<float> floats;
  std::vector<double> doubles;
};

// Adds the columns `names` of a table; those that it lacks are left out. Each cell reads at the
// other side as it reads here: numbers that a file would not hold as they are, are sent as numbers,
// and everything else as its text. kInvalidArgument names a column that hdps cannot read, or one
// that has neither as many rows as those before it nor one; kResourceExhausted says that they are
// more than a request may have.
Status AddCells(const ColumnTable& table, const std::vector<std::string>& names, SentCells* cells);

// Moves the cells into a request.
void PutInto(PredictRequest* request, SentCells cells);

// Returns the rows of a request that was decoded, in whose sections its cells stay. A column of one
// cell beside others of more counts for all rows. kResourceExhausted for more rows than a request
// may have; kInvalidArgument for columns of one name.
Result<std::shared_ptr<const ColumnTable>> TableOf(PredictRequest request);

}  // namespace hdps
