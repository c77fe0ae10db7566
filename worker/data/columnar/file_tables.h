// Reads rows of files as tables of texts, for whoever takes rows by columns.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/platform/file_system.h"
#include "worker/data/batch_reader.h"
#include "worker/data/columnar/columns.h"

namespace hdps {

class LineReader;
class RowAdder;
struct DataSpec;

// Gives the rows of files in order, which is what a program would send that has the values of the
// files: a column of texts for each of the job's columns by its name, of criteo "label", I1 to I13
// and C1 to C26. Of a format whose rows have no named columns it is the one column "row", of lines.
// A number has a decimal point, whatever the files have.
class FileTables {
 public:
  // `options` tells which rows are read: side and seed. kInvalidArgument for a table or images in
  // place of lines. `files` must outlive the result.
  static Result<std::unique_ptr<FileTables>> Open(FileSystem& files, const DataSpec& data,
                                                  std::vector<std::string> paths,
                                                  const ReaderOptions& options);
  ~FileTables();

  // Returns the next rows, at most `rows_max` and fewer if they are long; null at the end. A line
  // that lacks cells has empty ones in their place.
  Result<std::shared_ptr<const ColumnTable>> Next(uint64_t rows_max);

 private:
  FileTables(const DataSpec& data, std::unique_ptr<RowAdder> rows);

  const bool has_columns_;
  const char decimal_;
  std::vector<std::string> names_;  // [columns]
  std::vector<bool> numeric_;       // [columns]: cells are numbers with the files' decimal point.
  std::unique_ptr<RowAdder> rows_;
  std::unique_ptr<LineReader> lines_;
};

// Makes a table of texts: cells[c] has the cells of column names[c]. Requires: all columns have as
// many cells, with less than 2 GiB of text.
std::shared_ptr<const ColumnTable> TableOfTexts(const std::vector<std::string>& names,
                                                const std::vector<std::vector<std::string>>& cells);

}  // namespace hdps
