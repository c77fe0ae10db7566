// Recognizes libsvm, libffm and libfm, and variants of these.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "tools/prepare/data_layout.h"

namespace hdps {

// Recognizes the layout from the first lines of a file; returns nothing if they are not entries.
// Returns kInvalidArgument for variants that hdps does not read (queries, several labels,
// namespaces, no labels), with the place and the remedy.
Result<std::optional<DataLayout>> TellEntries(const std::string& path,
                                              const std::vector<FirstLine>& lines);

}  // namespace hdps
