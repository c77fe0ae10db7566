// Counts the values of sparse features, and makes a vocabulary of those that come often.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/job/vocabulary.h"
#include "common/platform/file_system.h"

namespace hdps {

struct Job;

// The values of one feature, or of the columns of one vocabulary: the different ones, and those
// that come often enough.
struct ValuesOfSpace {
  std::string space;  // As in KeySpacesOf().
  uint64_t values = 0, frequent = 0;
};

struct CountedVocabulary {
  Vocabulary vocabulary;
  std::vector<ValuesOfSpace> spaces;  // In the order of their first features.
};

// Counts the values of the sparse features, not of derived ones, over the rows that the job trains
// on: rows that data.validation_share holds out are left out, and rows that cannot be read. A value
// is kept that comes `min_count` times or more; the missing category is a value.
//
// Counts are exact and memory is bounded: at most `counters_max` values are counted in a pass over
// the files. If there are more, a pass counts only those whose keys lie in the first part of what
// is left of the keys' range, and another pass follows.
Result<CountedVocabulary> CountVocabulary(FileSystem& files, const Job& job, uint64_t min_count,
                                          size_t counters_max = size_t{1} << 22);

}  // namespace hdps
