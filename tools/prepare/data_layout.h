// What files are, told from the first lines of one: format, delimiter, header, comments.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/job/data_spec.h"
#include "common/platform/file_system.h"

namespace hdps {

struct DataLayout {
  DataFormat format = DataFormat::kCsv;
  std::string delimiter = ",";
  bool header = false;
  std::string header_line;  // As it stands in the file.
  std::string comment;
  std::vector<std::string> names;  // kCsv: of the columns; column1, ... where there is no header.
  uint32_t num_fields = 0;         // kLibfm: entries of a row.
};

// Reads the beginning of the file. kInvalidArgument for one without rows, and for one that is none
// of the formats: the message says what its first line looks like.
Result<DataLayout> TellLayout(FileSystem& files, const std::string& path);

}  // namespace hdps
