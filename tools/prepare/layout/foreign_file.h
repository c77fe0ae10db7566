// Recognizes files that are not rows of text by their first bytes.
#pragma once

#include <string>

#include "common/base/status.h"
#include "common/platform/file_system.h"

namespace hdps {

// Returns kInvalidArgument for archives, workbooks, columnar files and other encodings; the message
// says what the file is and how to convert it.
Status CheckIsText(FileSystem& files, const std::string& path);

}  // namespace hdps
