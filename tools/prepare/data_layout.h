// What files are, told from the first lines of one: format, delimiter, header, comments.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/job/spec/data_spec.h"
#include "common/platform/file_system.h"

namespace hdps {

struct DataLayout {
  DataFormat format = DataFormat::kCsv;
  std::string delimiter = ",";
  std::string quote = "\"";   // As data.quote.
  std::string decimal = ".";  // As data.decimal.
  bool header = false;
  std::string header_line;  // As it stands in the file.
  std::string comment;
  std::vector<std::string> first_cells;  // kCsv: of the first line,
  std::string why_no_header;             // and why they are no names, in words.
  std::vector<std::string> notes;        // What a person should look at.
  std::vector<std::string> names;  // kCsv: of the columns; column1, ... where there is no header.
  uint32_t num_fields = 0;         // kLibfm: entries of a row.
};

// One of the first lines of a file.
struct FirstLine {
  std::string text;
  uint64_t number = 0;  // From 1.
};

// Reads the beginning of the file. kInvalidArgument for one without rows, and for one that is none
// of the formats: the message says what it looks like, and how it is made one that is read.
Result<DataLayout> TellLayout(FileSystem& files, const std::string& path);

}  // namespace hdps
