// Reads and parses the rows of files one after another, for code that examines the data as a whole.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/platform/file_system.h"
#include "worker/data/line_reader.h"
#include "worker/data/row.h"

namespace hdps {

struct DataSpec;
struct LabelSpec;

// Gives parsed rows, without derived features and with numbers as they are.
class ParsedRows {
 public:
  // `labels` as in LabelsOf(job). Requires: `files` and `data` outlive it.
  ParsedRows(FileSystem& files, const DataSpec& data, const std::vector<std::string>& paths,
             const std::vector<LabelSpec>& labels, LineRules rules);

  // kInvalidArgument, too, if a table does not fit the job.
  Status Start() { return made_.ok() ? lines_.Start() : made_.status(); }
  // Returns the next readable row; false after the last.
  Result<bool> Next(Row* row);
  // The line of the last row, valid until the next call, and the number of lines before it that are
  // rows or bad rows.
  const Line& line() const { return line_; }
  uint64_t number() const { return taken_ - 1; }
  uint64_t bytes_read() const { return lines_.bytes_read(); }

 private:
  Status TakeHeader(const std::string& path, std::string_view text);

  const DataSpec& data_;
  const Result<std::unique_ptr<RowParser>> made_;
  RowParser* const parser_;         // That of made_; null if it is an error.
  std::optional<CellOrder> order_;  // Order of the current file, if its header names its columns.
  LineReader lines_;
  Line line_;
  uint64_t taken_ = 0;
};

}  // namespace hdps
