// Makes keys of single values of a feature, as the rows of a job's data have them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"

namespace hdps {

class ColumnTable;
struct DataSpec;

// The name by which errors call rows that a program holds.
inline constexpr const char* kRowsOfProgram = "the data";

// Returns the sparse features that are not derived from others.
std::vector<std::string> BaseFeatures(const DataSpec& data);

// Returns the key of each value, [rows], in the column `feature` of the table. `data` has its
// vocabulary. kInvalidArgument if the job has no such feature, if it is derived from others, so
// that its values have no texts, and for a value without a key: an id from its vocab_size on, or a
// missing one.
Result<std::vector<Key>> KeysOfFeature(const DataSpec& data, const std::string& feature,
                                       std::shared_ptr<const ColumnTable> values);

}  // namespace hdps
