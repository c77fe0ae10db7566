// Turns rows of a table into batches for a model, without labels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/data/batch.h"
#include "worker/data/columnar/columns.h"

namespace hdps {

class RowAdder;
struct DataSpec;

// The column with the lines of a job whose format has no named columns.
inline constexpr const char* kLinesColumn = "row";

// Reads any rows of one table by the columns of a job. If the job's format has no named columns, a
// row is a line of its data, in the column kLinesColumn of texts; lines may lack their labels, as
// in a file to predict. Labels, weights and groups are neither read nor needed, and columns that
// the job does not name are passed over. For use by one thread; several readers may share a table.
class TableRows {
 public:
  // `name` stands for the table in messages. kInvalidArgument names a column that the table lacks
  // or whose type does not fit the job.
  static Result<std::unique_ptr<TableRows>> Make(const DataSpec& data,
                                                 std::shared_ptr<const ColumnTable> table,
                                                 const std::string& name);
  ~TableRows();

  // Takes another table if its columns have the names and types of the first one's; then returns
  // true. Else the old one stays. To make a reader takes longer than to read some rows.
  bool Use(std::shared_ptr<const ColumnTable> table);
  void Leave();  // Drops the table, until another is used.

  uint64_t num_rows() const;
  // Returns the rows [begin, end) in their order, an example each, with the keys and numbers that
  // `hdps predict` reads from a CSV file of the same values. kInvalidArgument names the first row
  // that cannot be read, with its column and value. Requires: end <= num_rows().
  Result<Batch> Read(uint64_t begin, uint64_t end);

 private:
  TableRows(std::shared_ptr<const ColumnTable> table, std::optional<size_t> lines,
            std::unique_ptr<RowAdder> rows);

  std::shared_ptr<const ColumnTable> table_;
  const std::vector<ColumnTable::Column> columns_;
  const std::optional<size_t> lines_;  // The column of lines; none: columns have names.
  const std::unique_ptr<RowAdder> rows_;
};

}  // namespace hdps
