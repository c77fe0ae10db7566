// Files that are no text of rows, told by their first bytes.
#pragma once

#include <string>

#include "common/base/status.h"
#include "common/platform/file_system.h"

namespace hdps {

// kInvalidArgument for a file of another kind than hdps reads (archives, workbooks, columns of
// bytes, other encodings): the message says what it is, and how it is made one that is read.
Status CheckIsText(FileSystem& files, const std::string& path);

}  // namespace hdps
