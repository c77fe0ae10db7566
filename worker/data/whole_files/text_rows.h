// Reads rows to predict in batches, with the text of one column for each row.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/platform/file_system.h"
#include "worker/data/batch.h"

namespace hdps {

struct DataSpec;

struct TextBatch {
  Batch rows;                      // In the order of the files; without labels.
  std::vector<std::string> texts;  // [rows]
};

// Invariant: memory does not depend on the size of the files.
class TextRows {
 public:
  virtual ~TextRows() = default;
  // Returns the next rows, at most `rows_max`, none at the end. kInvalidArgument names the place of
  // the first line that is no row, or that lacks the column's cell.
  virtual Result<TextBatch> Next(uint32_t rows_max) = 0;
};

// `column` is a column with a cell of its own. Requires: rows have named cells (DataFormat::kCsv,
// kCriteo); `files` outlives the result.
Result<std::unique_ptr<TextRows>> NewTextRows(FileSystem& files, const DataSpec& data,
                                              const std::vector<std::string>& paths,
                                              const std::string& column);

}  // namespace hdps
