// Recognizes the layout of data files from the first lines of one: format, delimiter, header,
// comments.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/job/spec/data_words.h"
#include "common/platform/file_system.h"

namespace hdps {

struct DataLayout {
  DataFormat format = DataFormat::kCsv;
  std::string delimiter = ",";
  std::string quote = "\"";   // The setting data.quote.
  std::string decimal = ".";  // The setting data.decimal.
  bool header = false;
  std::string header_line;  // As it stands in the file.
  std::string comment;
  std::vector<std::string> first_cells;  // kCsv: cells of the first line.
  std::string why_no_header;             // Reason why first_cells are not names.
  std::vector<std::string> notes;        // Advice what to check.
  // kCsv: names of the columns; column1, ... if there is no header. Typed cells: of the columns
  // that can be read.
  std::vector<std::string> names;
  // Typed cells: columns of lists, and of numbers that are no keys because they may have fractions.
  std::set<std::string> lists, fractions;
  uint32_t num_fields = 0;  // kLibfm: entries of a row.
};

// One of the first lines of a file, with its number.
struct FirstLine {
  std::string text;
  uint64_t number = 0;  // Number of the line, from 1.
};

// Reads the beginning of the file, or the columns of a Parquet file. Returns kInvalidArgument if it
// has no rows or none of the formats; the message says what it looks like and how to convert it.
Result<DataLayout> TellLayout(FileSystem& files, const std::string& path);

}  // namespace hdps
