// Derives features from the columns of a row: buckets of numbers, crosses of categories.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/job/spec/data_words.h"
#include "worker/data/row.h"

namespace hdps {

struct DataSpec;
struct FeatureSpec;

// Returns FeaturesOf(data).sparse without the derived features.
std::vector<std::string> BaseFeaturesOf(DataSpec data);

// A row with more keys is taken for a mistake.
inline constexpr size_t kRowKeysMax = size_t{1} << 16;

// Appends the derived features, in the order of the job, to a row that has its base features.
//
// A bucketized feature has one key: that of the bucket's number in decimal, or of the empty text if
// the number is missing. A crossed feature has a key for each combination of one key from each
// source: k = CombineKeys(... CombineKeys(k0, k1) ..., kn), modulo hash_buckets if that is not 0,
// and then CombineKeys(salt of the feature, k).
class DerivedFeatures {
 public:
  // Takes the base columns by name, in the order of Row::numbers and of the row's features.
  // kInvalidArgument names a feature whose `from` is not among them.
  static Result<std::unique_ptr<DerivedFeatures>> Make(const std::vector<FeatureSpec>& features,
                                                       const std::vector<std::string>& numeric,
                                                       const std::vector<std::string>& sparse);
  ~DerivedFeatures();
  // Returns nothing, or why the row has too many keys.
  std::optional<RowError> Append(Row* row);

 private:
  DerivedFeatures();
  struct Source {
    bool bucketized;  // `index` is into features_, else into the row's base features.
    size_t index;
  };
  struct Feature;

  Status Resolve(const std::vector<std::string>& numeric, const std::vector<std::string>& sparse);
  bool Cross(const Feature& feature, Row* row);

  std::vector<Feature> features_;
  // The current row; kept to avoid allocation.
  std::vector<Key> bucket_key_;  // [features_]
  std::vector<Key> crossed_, longer_;
};

// Transforms the numbers of the file into those of the model. A missing number becomes 0.
class NumericTransforms {
 public:
  // One for each numeric column.
  struct Column {
    Transform transform = Transform::kNone;
    double mean = 0, scale = 1;
  };
  explicit NumericTransforms(std::vector<Column> columns);
  // Transforms the numbers [columns]. Returns false if a result does not fit a float.
  bool Apply(const std::vector<double>& numbers, std::vector<float>* transformed) const;
  size_t size() const { return columns_.size(); }

 private:
  std::vector<Column> columns_;
  std::vector<float> log1p_;  // log1p of small whole numbers, because most counts are small.
};

}  // namespace hdps
