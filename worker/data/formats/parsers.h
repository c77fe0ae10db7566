// The parsers of all formats, by factory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/job/job_facts.h"
#include "common/job/spec/data_spec.h"
#include "worker/data/row.h"

namespace hdps {

struct LabelSpec;

// `data` has passed ParseJob, or NewBatchReader's own checks. Each gives the base features of
// FeaturesOf(data), in its order; derived features come later.

// FeaturesOf(data).sparse without the derived ones.
inline std::vector<std::string> BaseFeaturesOf(DataSpec data) {
  data.features.clear();
  return FeaturesOf(data).sparse;
}

// Cells between delimiters; "a cell in quotes", with "" for a quote inside. Blanks around a cell do
// not count. A missing number is kMissingNumber, a missing category the value "", and a missing
// multi-valued cell has no keys.
std::unique_ptr<RowParser> NewCsvParser(const DataSpec& data, const std::vector<LabelSpec>& labels);

// label, 13 integers, 26 categories between tabs; an empty cell is missing.
std::unique_ptr<RowParser> NewCriteoParser(const DataSpec& data, uint32_t num_classes);

// The three formats of sparse entries:
// libsvm: "label index:value ...", with "# ..." at the end passed over. The key is that of the
// index, the value its weight; index alone has weight 1.
// libffm: "label field:index:value ..."; field f is sparse feature f.
// libfm: as libsvm, but every row has data.num_fields entries; the entry at place f of its row,
// from 0, is of sparse feature f.
std::unique_ptr<RowParser> NewLibsvmParser(const DataSpec& data, uint32_t num_classes);

// One image: the byte of its label, then a byte a pixel, as OpenImages gives them.
std::unique_ptr<RowParser> NewIdxParser(const DataSpec& data, uint32_t num_classes);

}  // namespace hdps
