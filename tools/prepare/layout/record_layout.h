// Recognizes the columns of TFRecord files and of JSON lines by their first rows.
#pragma once

#include <string>

#include "common/base/status.h"
#include "common/platform/file_system.h"
#include "tools/prepare/data_layout.h"

namespace hdps {

// Returns true if the first line with text is a JSON object.
bool IsJsonLines(FileSystem& files, const std::string& path);
// Reads the names and kinds of values in the first rows of a file of this format, tfrecord or
// jsonl. Columns with values that hdps does not read are left out, with a note each. Returns
// kInvalidArgument for a file that cannot be read or has no such columns.
Result<DataLayout> TellRecords(FileSystem& files, const std::string& path, DataFormat format);

}  // namespace hdps
