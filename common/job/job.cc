// What follows from a job: its features, and where it can be trained.
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

std::string WhyNotOnCuda(const Job& job) {
  for (const TableSpec& table : job.tables) {
    if (table.optimizer.kind != OptimizerKind::kOwn || table.vocab_cache_size == 0) continue;
    return "table \"" + table.name + "\" keeps rows at the workers (vocab_cache_size = " +
           std::to_string(table.vocab_cache_size) + "), on a GPU where they have one, and its " +
           "optimizer " + OptimizerName(table.optimizer) +
           " is the program's own, which has no code for CUDA; set model.device = cpu, or leave "
           "vocab_cache_size out";
  }
  return "";
}

}  // namespace hdps
