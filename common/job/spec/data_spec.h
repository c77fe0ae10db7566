// The settings of the data of a job and how it is read.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/enum_words.h"
#include "common/job/spec/data_words.h"

namespace hdps {

class ColumnTable;  // worker/data/columnar/columns.h
class Vocabulary;

// One column of a CSV/TSV file, in the file's order.
struct ColumnSpec {
  std::string name;
  // Another column whose cell this one reads too, so that one cell may be a feature and a group at
  // once. Empty if the column has a cell of its own.
  std::string from;
  bool has_cell() const { return from.empty(); }
  const std::string& cell() const { return from.empty() ? name : from; }
  ColumnType type = ColumnType::kCategorical;
  Transform transform = Transform::kNone;  // Numeric columns.
  double mean = 0, scale = 1;              // kStandardize: (x - mean) / scale.
  std::string separator = "|";             // kMulti: separates the values of a cell.
  // kLabel: texts that mean 1, others mean 0; empty for a number.
  std::vector<std::string> positive;
  std::vector<std::string> classes;  // kLabel: texts of classes 0, 1, ...; empty for a number.
  // Sparse columns with the same vocabulary have the same keys, and so the same rows of a table,
  // for the same values. Empty for the column's own name.
  std::string vocabulary;
  const std::string& key_space() const { return vocabulary.empty() ? name : vocabulary; }
  // Sparse columns: a value is an id, a whole number whose own row it reads, and an id from this
  // one on has no row. 0: a value is a text, whose hash is the key.
  uint64_t vocab_size = 0;
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
  // kBucketized: one numeric column. kCrossed: two or more categorical columns or bucketized
  // features.
  std::vector<std::string> from;
  // kBucketized: ascending. The bucket of value v is the number of boundaries <= v.
  std::vector<double> boundaries;
  uint64_t hash_buckets = 0;  // kCrossed: values are taken modulo this; 0 keeps 64 bits.
};

// A named set of files for evaluations.
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
// Negative examples, label 0, that the reader adds while training: a positive example with the item
// of another row. kUniform draws among the distinct items of data.train, kFrequency among its rows.
struct NegativeSpec {
  uint32_t per_positive = 0;  // Negatives per positive example; 0 for none.
  NegativesBy by = NegativesBy::kFrequency;
  friend bool operator==(const NegativeSpec&, const NegativeSpec&) = default;
};

// Names the values of sparse features with keys of their own; all others of a feature share one.
struct VocabularySpec {
  std::string file;      // As vocabulary.h reads it; empty: every value has a key of its own.
  std::string checksum;  // That of the file, 16 hexadecimal digits.
  // The contents, read by LoadJob() for a process that reads the data.
  std::shared_ptr<const Vocabulary> values = nullptr;
};

// How an entry kafka://... of `train` is read.
struct KafkaSpec {
  // Where a job begins that goes on from no checkpoint: earliest, latest, or a time as
  // UtcTimestamp() writes it; or, if not empty, the offset of each partition.
  std::string start = "earliest";
  std::map<uint32_t, int64_t> start_offsets;
  // A worker gives what it has of a step after so many seconds; 0: it waits.
  double flush_s = 5;
  std::map<std::string, std::string> settings;  // Of librdkafka.
  std::string secrets;                          // A file with more of them; empty: none.
  friend bool operator==(const KafkaSpec&, const KafkaSpec&) = default;
};

struct DataSpec {
  DataFormat format = DataFormat::kCsv;
  std::vector<std::string> train;  // Paths in the order of reading; .gz and .zst are decompressed.
  // Waits for more rows behind those of the only entry of `train`, in its last file and in new
  // ones. The entry then stays as it is, a folder for example: see TrainingFiles().
  bool follow = false;
  // The name of a file, beside the files that are followed, which says that no more rows come;
  // empty: none says it.
  std::string follow_until;
  KafkaSpec kafka;  // Where `train` is one entry kafka://...
  std::vector<std::string> eval;
  std::vector<EvalSetSpec> eval_sets;  // Additional evaluation sets with names.
  // The share of the rows of `train` that is held out and never trained on. A hash of the row
  // without its labels selects them.
  double validation_share = 0;
  // If not 0, blocks of so many lines of a file are selected instead, by a hash of their number.
  uint64_t validation_block_lines = 0;
  // Sparse features, not derived, that identify the item of a row.
  std::vector<std::string> item_features;
  NegativeSpec negatives;
  VocabularySpec vocabulary;  // All formats with sparse features.
  // By sparse feature: its different values, and how many of these, the most frequent ones, half of
  // the rows have. For planning alone; features may be missing.
  std::map<std::string, uint64_t> distinct, distinct_half;
  std::string delimiter = ",";
  std::string quote = "\"";           // kCsv: around a cell; empty for none.
  std::string decimal = ".";          // kCsv: the decimal point.
  bool header = false;                // kCsv, kCriteo: the first line of each file is skipped.
  std::string missing = "";           // A cell with this text, after trimming blanks, is missing.
  std::string comment = "";           // Lines that begin with this are skipped; empty for none.
  std::vector<ColumnSpec> columns;    // kCsv
  std::vector<FeatureSpec> features;  // Derived features.
  uint32_t num_fields = 1;  // kLibffm, kLibfm: fields 0..num_fields-1, one sparse feature each.
  Transform numeric_transform = Transform::kLog1p;  // kCriteo: for I1..I13.
  std::vector<uint32_t> image_shape = {28, 28};     // kIdx: axes of an image.
  // Shuffle window of training data in rows; 0 keeps the file order.
  uint64_t shuffle_rows = 65536;
  // Rows of each step that worker 0, 1, ... takes, one behind the other; empty: alike.
  std::vector<uint32_t> parts;
  int64_t max_bad_rows = 0;  // More bad rows than this end the job.
  // Tells where the rows of the first pass are kept for later ones; it changes no result.
  DataCache cache = DataCache::kAuto;
  std::string cache_path;     // A folder; empty: beside the results of a run.
  double cache_share = 0.25;  // At most this share of the memory that the process may have.
  // Numbers of the numeric columns that a reader keeps, in their order in a batch; empty for all.
  // It is no setting: the data of a rank has it if numeric columns are cut over the workers.
  std::vector<uint32_t> kept_numbers = {};
  // Tables of this process by the path that names them in a list of files. A table stands alone in
  // its list. It is no setting, and no part of the job's digest.
  std::map<std::string, std::shared_ptr<const ColumnTable>> tables = {};
};

}  // namespace hdps
