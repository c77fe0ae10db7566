// What the data of a job is and how it is read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/enum_words.h"

namespace hdps {

enum class DataFormat : uint8_t { kCsv, kCriteo, kLibsvm, kLibffm, kLibfm, kIdx };
constexpr auto WordsOf(DataFormat) {
  using enum DataFormat;
  return EnumWords(kCsv, "csv", kCriteo, "criteo", kLibsvm, "libsvm", kLibffm, "libffm", kLibfm,
                   "libfm", kIdx, "idx");
}
enum class ColumnType : uint8_t { kLabel, kNumeric, kCategorical, kMulti, kSkip, kWeight, kGroup };
constexpr auto WordsOf(ColumnType) {
  using enum ColumnType;
  return EnumWords(kLabel, "label", kNumeric, "numeric", kCategorical, "categorical", kMulti,
                   "multi", kSkip, "skip", kWeight, "weight", kGroup, "group");
}
enum class Transform : uint8_t { kNone, kLog1p, kStandardize };  // log1p: sign(x) log(1 + |x|).
constexpr auto WordsOf(Transform) {
  using enum Transform;
  return EnumWords(kNone, "none", kLog1p, "log1p", kStandardize, "standardize");
}

// One column of a CSV/TSV file, in the file's order.
struct ColumnSpec {
  std::string name;
  // Another column, whose cell this one reads too: so a cell may be a feature and a group at once.
  // Empty: the column has a cell of its own.
  std::string from;
  bool has_cell() const { return from.empty(); }
  const std::string& cell() const { return from.empty() ? name : from; }
  ColumnType type = ColumnType::kCategorical;
  Transform transform = Transform::kNone;  // Numeric columns.
  double mean = 0, scale = 1;              // kStandardize: (x - mean) / scale.
  std::string separator = "|";             // kMulti: between the values of one cell.
  std::vector<std::string> positive;  // kLabel: texts that mean 1, all others 0; empty: a number.
  std::vector<std::string> classes;   // kLabel: texts of classes 0, 1, ...; empty: a number.
  // Of sparse columns: those of one vocabulary have the same keys, and so the same rows of a table,
  // for the same values. Empty: the column's own name.
  std::string vocabulary;
  const std::string& key_space() const { return vocabulary.empty() ? name : vocabulary; }
};

enum class FeatureKind : uint8_t { kBucketized, kCrossed };
constexpr auto WordsOf(FeatureKind) {
  using enum FeatureKind;
  return EnumWords(kBucketized, "bucketized", kCrossed, "crossed");
}

// A categorical feature derived from columns (or, for Criteo, from I1..I13 and C1..C26).
struct FeatureSpec {
  std::string name;
  FeatureKind kind = FeatureKind::kCrossed;
  std::vector<std::string> from;   // kBucketized: one numeric column. kCrossed: two or more
                                   // categorical columns or bucketized features.
  std::vector<double> boundaries;  // kBucketized: ascending; value v falls into the number of
                                   // boundaries that are <= v.
  uint64_t hash_buckets = 0;       // kCrossed: values modulo this many; 0 = all 64 bits.
};

// Files that are evaluated apart, under a name.
struct EvalSetSpec {
  std::string name;
  std::vector<std::string> files;
  friend bool operator==(const EvalSetSpec&, const EvalSetSpec&) = default;
};

enum class NegativesBy : uint8_t { kUniform, kFrequency };
constexpr auto WordsOf(NegativesBy) {
  using enum NegativesBy;
  return EnumWords(kUniform, "uniform", kFrequency, "frequency");
}
// Examples with label 0 that the reader makes to train on: a positive one with the item of another
// row. kUniform draws among the different items of data.train, kFrequency among its rows.
struct NegativeSpec {
  uint32_t per_positive = 0;  // 0: none are made.
  NegativesBy by = NegativesBy::kFrequency;
  friend bool operator==(const NegativeSpec&, const NegativeSpec&) = default;
};

struct DataSpec {
  DataFormat format = DataFormat::kCsv;
  std::vector<std::string>
      train;  // Paths, read in this order; .gz and .zst are unpacked on the way.
  std::vector<std::string> eval;
  std::vector<EvalSetSpec> eval_sets;  // Further ones, by name.
  // The share of the rows of `train` that is held out; a hash of the row without its labels decides
  // which. They are never trained on.
  double validation_share = 0;
  // Sparse features, none of them derived, that say which item a row is about.
  std::vector<std::string> item_features;
  NegativeSpec negatives;
  std::string delimiter = ",";
  std::string quote = "\"";           // kCsv: around a cell; empty: quotes are letters.
  std::string decimal = ".";          // kCsv: between the whole of a number and its fraction.
  bool header = false;                // kCsv, kCriteo: the first line of each file is not data.
  std::string missing = "";           // A cell with this text (after trimming blanks) is missing.
  std::string comment = "";           // Lines that begin with this are passed over; empty: none.
  std::vector<ColumnSpec> columns;    // kCsv
  std::vector<FeatureSpec> features;  // Derived.
  uint32_t num_fields = 1;            // kLibffm, kLibfm: fields 0..num_fields-1, one sparse
                                      // feature each.
  Transform numeric_transform = Transform::kLog1p;  // kCriteo: of I1..I13.
  std::vector<uint32_t> image_shape = {28, 28};     // kIdx: axes of one image.
  uint64_t shuffle_rows = 65536;  // Rows in the shuffle window of training data; 0 = file order.
  int64_t max_bad_rows = 0;       // More bad rows than this end the job.
};

}  // namespace hdps
