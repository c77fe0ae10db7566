// libsvm, libffm and libfm, and lines that are nearly so.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "tools/prepare/data_layout.h"

namespace hdps {

// Of the first lines of a file. None: they are no entries. kInvalidArgument for variants that are
// not read (queries, several labels, namespaces, no labels): the message has the place and the
// mend.
Result<std::optional<DataLayout>> TellEntries(const std::string& path,
                                              const std::vector<FirstLine>& lines);

}  // namespace hdps
