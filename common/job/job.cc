// What follows from a job: its features and its digests.
#include "common/job/job.h"

#include "common/base/hash.h"

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

uint64_t JobDigest(const Job& job) {
  Job same = job;
  const Job defaults;
  same.name = defaults.name;
  same.data.train.clear();
  same.data.eval.clear();
  same.data.max_bad_rows = defaults.data.max_bad_rows;
  same.model.type = "graph";
  same.model.device = defaults.model.device;
  same.train.epochs = defaults.train.epochs;
  same.train.max_steps = defaults.train.max_steps;
  same.train.eval_each_epoch = defaults.train.eval_each_epoch;
  if (same.train.mode == Mode::kSync) same.train.lookahead = 0;
  same.train.cache_refresh_steps = defaults.train.cache_refresh_steps;
  for (TableSpec& table : same.tables) table.vocab_cache_size = 0;
  same.checkpoint = defaults.checkpoint;
  same.cluster = defaults.cluster;
  same.cluster.shards = job.cluster.shards;
  return HashString(PrintJob(same));
}

uint64_t TablesDigest(const Job& job) {
  Job tables;
  tables.seed = job.seed;
  tables.model.type = "graph";
  tables.model.layers = job.model.layers;
  tables.model.records = job.model.records;
  tables.tables = job.tables;
  for (TableSpec& table : tables.tables) table.vocab_cache_size = 0;
  tables.cluster.shards = job.cluster.shards;
  tables.parallel.gradients_mean = false;  // The default once: checkpoints hold that digest.
  return HashString(PrintJob(tables));
}

}  // namespace hdps
