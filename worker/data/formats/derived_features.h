// Features made from the columns of a row: buckets of numbers, crosses of categories.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/job/spec/data_spec.h"
#include "worker/data/row.h"

namespace hdps {

// More keys than this in one row are taken for a mistake, not for data.
inline constexpr size_t kRowKeysMax = size_t{1} << 16;

// Appends the derived features to a row that has its base features, in the order of the job.
//
// A bucketized feature has one key, that of the bucket's number in decimal, or of the empty text
// where the number is missing. A crossed one has a key for each choice of one key from each of its
// sources: k = CombineKeys(... CombineKeys(k0, k1) ..., kn), taken modulo hash_buckets if that is
// not 0, then CombineKeys(salt of the feature, k).
class DerivedFeatures {
 public:
  // The base columns by name, in the order of Row::numbers and of the row's features.
  // kInvalidArgument names a feature whose `from` is not among them.
  static Result<std::unique_ptr<DerivedFeatures>> Make(const std::vector<FeatureSpec>& features,
                                                       const std::vector<std::string>& numeric,
                                                       const std::vector<std::string>& sparse);
  // None, or why the row is too much.
  std::optional<RowError> Append(Row* row);

 private:
  struct Source {
    bool bucketized;  // index is of features_, else of the row's base features.
    size_t index;
  };
  struct Feature {
    FeatureSpec spec;
    uint64_t salt;
    size_t number = 0;             // kBucketized: index in Row::numbers.
    std::vector<Key> bucket_keys;  // By bucket; the last is the missing number's.
    std::vector<Source> sources;   // kCrossed
  };

  Status Resolve(const std::vector<std::string>& numeric, const std::vector<std::string>& sparse);
  bool Cross(const Feature& feature, Row* row);

  std::vector<Feature> features_;
  // Of the row at hand; kept to allocate nothing.
  std::vector<Key> bucket_key_;  // [features_]
  std::vector<Key> crossed_, longer_;
};

// Numbers as the file has them -> numbers as the model takes them. A missing number is 0.
class NumericTransforms {
 public:
  // One for each numeric column.
  struct Column {
    Transform transform = Transform::kNone;
    double mean = 0, scale = 1;
  };
  explicit NumericTransforms(std::vector<Column> columns);
  // numbers, transformed: [columns]. False when a result does not fit a float.
  bool Apply(const std::vector<double>& numbers, std::vector<float>* transformed) const;
  size_t size() const { return columns_.size(); }

 private:
  std::vector<Column> columns_;
  std::vector<float> log1p_;  // log1p of the small whole numbers, which most counts are.
};

}  // namespace hdps
