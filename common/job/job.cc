// What follows from a job: its features.
#include "common/job/job.h"

namespace hdps {

FeatureNames FeaturesOf(const DataSpec& data) {
  FeatureNames names;
  switch (data.format) {
    case DataFormat::kCsv:
      for (const ColumnSpec& column : data.columns) {
        if (column.type == ColumnType::kNumeric) names.numeric.push_back(column.name);
        if (column.type == ColumnType::kCategorical || column.type == ColumnType::kMulti) {
          names.sparse.push_back(column.name);
        }
      }
      break;
    case DataFormat::kCriteo:
      for (int i = 1; i <= 13; ++i) names.numeric.push_back("I" + std::to_string(i));
      for (int c = 1; c <= 26; ++c) names.sparse.push_back("C" + std::to_string(c));
      break;
    case DataFormat::kLibsvm:
      names.sparse.push_back("features");
      break;
    case DataFormat::kLibffm:
    case DataFormat::kLibfm:
      for (uint32_t f = 0; f < data.num_fields; ++f) {
        names.sparse.push_back("field" + std::to_string(f));
      }
      break;
  }
  for (const FeatureSpec& feature : data.features) names.sparse.push_back(feature.name);
  return names;
}

}  // namespace hdps
