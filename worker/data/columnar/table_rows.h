// Turns rows of a table into batches for a model, without labels.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/base/status.h"
#include "worker/data/batch.h"
#include "worker/data/columnar/columns.h"

namespace hdps {

class RowAdder;
struct DataSpec;

// Reads any rows of one table by the columns of a job. Labels, weights and groups are neither read
// nor needed, and columns that the job does not name are passed over. For use by one thread;
// several readers may share a table.
class TableRows {
 public:
  // `name` stands for the table in messages. kInvalidArgument names a column that the table lacks
  // or whose type does not fit the job, and a job whose format has no named columns.
  static Result<std::unique_ptr<TableRows>> Make(const DataSpec& data,
                                                 std::shared_ptr<const ColumnTable> table,
                                                 const std::string& name);
  ~TableRows();

  uint64_t num_rows() const;
  // Returns the rows [begin, end) in their order, an example each, with the keys and numbers that
  // `hdps predict` reads from a CSV file of the same values. kInvalidArgument names the first row
  // that cannot be read, with its column and value. Requires: end <= num_rows().
  Result<Batch> Read(uint64_t begin, uint64_t end);

 private:
  TableRows(std::shared_ptr<const ColumnTable> table, std::unique_ptr<RowAdder> rows);

  const std::shared_ptr<const ColumnTable> table_;
  const std::unique_ptr<RowAdder> rows_;
};

}  // namespace hdps
