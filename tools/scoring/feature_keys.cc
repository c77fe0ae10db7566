// Reads a column of values as the only column of a job's rows.
#include "tools/scoring/feature_keys.h"

#include <algorithm>
#include <utility>

#include "common/base/nearest_name.h"
#include "common/job/job_facts.h"
#include "common/job/spec/data_spec.h"
#include "common/job/vocabulary.h"
#include "worker/data/batch.h"
#include "worker/data/columnar/table_rows.h"
#include "worker/step/evaluation.h"

namespace hdps {
namespace {

// Returns data of one column, whose values get the keys that they have as values of `feature`. It
// is categorical also for a feature with several values a row, whose cells are then single values.
Result<DataSpec> DataOfFeature(const DataSpec& data, const std::string& feature) {
  if (std::ranges::find(data.features, feature, &FeatureSpec::name) != data.features.end()) {
    return Status(Code::kInvalidArgument,
                  "feature \"" + feature +
                      "\" is made of other columns, so its values have no texts; give their keys");
  }
  const std::vector<std::string> known = BaseFeatures(data);
  const auto at = std::ranges::find(known, feature);
  if (at == known.end()) {
    return Status(Code::kInvalidArgument,
                  "there is no feature \"" + feature + "\"" + DidYouMean(feature, known));
  }
  ColumnSpec column;
  column.name = feature;
  column.vocabulary = KeySpacesOf(data)[static_cast<size_t>(at - known.begin())];
  const auto own = std::ranges::find(data.columns, feature, &ColumnSpec::name);
  if (own != data.columns.end()) column.vocab_size = own->vocab_size;
  DataSpec alone;
  alone.columns = {column};
  alone.missing = data.missing;
  alone.vocabulary = data.vocabulary;
  return alone;
}

}  // namespace

std::vector<std::string> BaseFeatures(const DataSpec& data) {
  DataSpec own = data;
  own.features.clear();
  return FeaturesOf(own).sparse;
}

Result<std::vector<Key>> KeysOfFeature(const DataSpec& of_job, const std::string& feature,
                                       std::shared_ptr<const ColumnTable> values) {
  HDPS_ASSIGN_OR_RETURN(const DataSpec data, DataOfFeature(of_job, feature));
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<TableRows> rows,
                        TableRows::Make(data, std::move(values), kRowsOfProgram));
  std::vector<Key> keys;
  for (uint64_t begin = 0; begin < rows->num_rows(); begin += kEvaluationExamples) {
    const uint64_t end = std::min(begin + kEvaluationExamples, rows->num_rows());
    HDPS_ASSIGN_OR_RETURN(const Batch batch, rows->Read(begin, end));
    const SparseColumn& column = batch.sparse.front();
    for (uint32_t i = 0; i < batch.num_examples; ++i) {
      if (column.offsets[i] < column.offsets[i + 1]) continue;
      return Status(Code::kInvalidArgument,
                    "row " + std::to_string(begin + i) + " of \"" + feature +
                        "\" is no id with a row: expected a whole number from 0 to " +
                        std::to_string(data.columns.front().vocab_size - 1));
    }
    keys.insert(keys.end(), column.keys.begin(), column.keys.end());
  }
  return keys;
}

}  // namespace hdps
