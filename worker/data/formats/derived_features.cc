// Computes buckets, crosses and transforms.
#include "worker/data/formats/derived_features.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/hash.h"
#include "common/job/job_facts.h"
#include "common/job/spec/data_spec.h"

namespace hdps {
namespace {

constexpr size_t kLog1pTable = 4096;

// Returns the index of `name`, or names.size().
size_t IndexOf(const std::vector<std::string>& names, const std::string& name) {
  return static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

Status NotAmong(const FeatureSpec& spec, const std::string& from, const char* what) {
  return {Code::kInvalidArgument,
          "data.features: '" + spec.name + "': from '" + from + "' is not " + what};
}

}  // namespace

struct DerivedFeatures::Feature {
  FeatureSpec spec;
  uint64_t salt;
  size_t number = 0;             // kBucketized: index in Row::numbers.
  std::vector<Key> bucket_keys;  // By bucket; the last is the key of a missing number.
  std::vector<Source> sources;   // kCrossed
};

DerivedFeatures::DerivedFeatures() = default;
DerivedFeatures::~DerivedFeatures() = default;

std::vector<std::string> BaseFeaturesOf(DataSpec data) {
  data.features.clear();
  return FeaturesOf(data).sparse;
}

Result<std::unique_ptr<DerivedFeatures>> DerivedFeatures::Make(
    const std::vector<FeatureSpec>& features, const std::vector<std::string>& numeric,
    const std::vector<std::string>& sparse) {
  std::unique_ptr<DerivedFeatures> made(new DerivedFeatures());
  for (const FeatureSpec& spec : features) {
    Feature feature;
    feature.spec = spec;
    feature.salt = HashString(spec.name);
    made->features_.push_back(std::move(feature));
  }
  made->bucket_key_.resize(features.size());
  HDPS_RETURN_IF_ERROR(made->Resolve(numeric, sparse));
  return made;
}

Status DerivedFeatures::Resolve(const std::vector<std::string>& numeric,
                                const std::vector<std::string>& sparse) {
  for (Feature& feature : features_) {
    const FeatureSpec& spec = feature.spec;
    if (spec.kind == FeatureKind::kBucketized) {
      if (spec.from.size() != 1) return NotAmong(spec, "", "one numeric column");
      feature.number = IndexOf(numeric, spec.from[0]);
      if (feature.number == numeric.size()) return NotAmong(spec, spec.from[0], "a numeric column");
      for (size_t bucket = 0; bucket <= spec.boundaries.size(); ++bucket) {
        feature.bucket_keys.push_back(FeatureKey(feature.salt, std::to_string(bucket)));
      }
      feature.bucket_keys.push_back(FeatureKey(feature.salt, ""));
      continue;
    }
    if (spec.from.size() < 2) return NotAmong(spec, "", "two columns or more");
    for (const std::string& from : spec.from) {
      const size_t column = IndexOf(sparse, from);
      const auto bucketized =
          std::find_if(features_.begin(), features_.end(), [&](const Feature& other) {
            return other.spec.kind == FeatureKind::kBucketized && other.spec.name == from;
          });
      if (column < sparse.size()) {
        feature.sources.push_back({.bucketized = false, .index = column});
      } else if (bucketized != features_.end()) {
        const auto index = static_cast<size_t>(bucketized - features_.begin());
        feature.sources.push_back({.bucketized = true, .index = index});
      } else {
        return NotAmong(spec, from, "a categorical column or a bucketized feature");
      }
    }
  }
  return {};
}

std::optional<RowError> DerivedFeatures::Append(Row* row) {
  if (features_.empty()) return std::nullopt;
  for (size_t i = 0; i < features_.size(); ++i) {
    const Feature& feature = features_[i];
    if (feature.spec.kind != FeatureKind::kBucketized) continue;
    const double value = row->numbers[feature.number];
    const std::vector<double>& boundaries = feature.spec.boundaries;
    const auto bucket = static_cast<size_t>(
        std::upper_bound(boundaries.begin(), boundaries.end(), value) - boundaries.begin());
    bucket_key_[i] = std::isnan(value) ? feature.bucket_keys.back() : feature.bucket_keys[bucket];
  }
  for (size_t i = 0; i < features_.size(); ++i) {
    const Feature& feature = features_[i];
    if (feature.spec.kind == FeatureKind::kBucketized) {
      row->AddFeature(bucket_key_[i]);
    } else if (!Cross(feature, row)) {
      return RowError{{}, feature.spec.name, "fewer values to cross"};
    }
  }
  if (!row->weights.empty()) row->weights.resize(row->keys.size(), 1.0f);
  return std::nullopt;
}

bool DerivedFeatures::Cross(const Feature& feature, Row* row) {
  for (size_t p = 0; p < feature.sources.size(); ++p) {
    const Source& source = feature.sources[p];
    const Key* keys = &bucket_key_[source.index];
    size_t num_keys = 1;
    if (!source.bucketized) {
      keys = row->keys.data() + row->KeyBegin(source.index);
      num_keys = row->key_ends[source.index] - row->KeyBegin(source.index);
    }
    if (p == 0) {
      crossed_.assign(keys, keys + num_keys);
      continue;
    }
    if (crossed_.size() * num_keys > kRowKeysMax) return false;
    longer_.clear();
    for (Key left : crossed_) {
      for (size_t k = 0; k < num_keys; ++k) longer_.push_back(CombineKeys(left, keys[k]));
    }
    crossed_.swap(longer_);
  }
  if (row->keys.size() + crossed_.size() > kRowKeysMax) return false;
  for (Key key : crossed_) {
    if (feature.spec.hash_buckets > 0) key %= feature.spec.hash_buckets;
    row->keys.push_back(CombineKeys(feature.salt, key));
  }
  row->EndFeature();
  return true;
}

NumericTransforms::NumericTransforms(std::vector<Column> columns) : columns_(std::move(columns)) {
  for (size_t i = 0; i < kLog1pTable; ++i) {
    log1p_.push_back(static_cast<float>(std::log1p(static_cast<double>(i))));
  }
}

bool NumericTransforms::Apply(const std::vector<double>& numbers,
                              std::vector<float>* transformed) const {
  transformed->resize(columns_.size());
  bool all_fit = true;
  for (size_t c = 0; c < columns_.size(); ++c) {
    const Column& column = columns_[c];
    double value = numbers[c];
    if (std::isnan(value)) {
      value = 0;
    } else if (column.transform == Transform::kStandardize) {
      value = (value - column.mean) / column.scale;
    } else if (column.transform == Transform::kLog1p) {
      if (value >= 0 && value < kLog1pTable && value == static_cast<double>(int(value))) {
        (*transformed)[c] = log1p_[static_cast<size_t>(value)];
        continue;
      }
      value = std::copysign(std::log1p(std::abs(value)), value);
    }
    const auto narrow = static_cast<float>(value);
    all_fit = all_fit && std::isfinite(narrow);
    (*transformed)[c] = narrow;
  }
  return all_fit;
}

}  // namespace hdps
