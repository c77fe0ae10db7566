// One row as a parser gives it, and how it joins a batch.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "worker/data/batch.h"

namespace hdps {

struct DataSpec;
struct LabelSpec;

// A number that is not there. Only missing numbers are not finite.
inline constexpr double kMissingNumber = std::numeric_limits<double>::quiet_NaN();

// Invariant: sparse feature f owns keys[KeyBegin(f) .. key_ends[f]); key_ends never decreases and
// ends at keys.size(); weights is empty (all ones) or as long as keys. Reused from row to row, so
// that parsing allocates nothing.
struct Row {
  float label = 0;
  std::vector<float> task_labels;  // [tasks], where there are several; then `label` is not used.
  float weight = 1;                // How much it counts.
  Key group = 0;
  uint64_t positive_texts = 0;  // The bit of its label's text, as in Batch.
  std::vector<double> numbers;  // As the file has them; kMissingNumber where it has none.
  std::vector<Key> keys;
  std::vector<float> weights;
  std::vector<uint32_t> key_ends;

  void Clear();
  uint32_t KeyBegin(size_t feature) const { return feature == 0 ? 0 : key_ends[feature - 1]; }
  void EndFeature() { key_ends.push_back(static_cast<uint32_t>(keys.size())); }
  // A feature with this one key.
  void AddFeature(Key key) {
    keys.push_back(key);
    EndFeature();
  }
};

// Why a line is no row. The views point into the line or live as long as the parser.
struct RowError {
  std::string_view value;     // Where in the line it is follows from its address.
  std::string_view column;    // The column's name; empty: the row as a whole.
  std::string_view expected;  // "a number"
};

// A value as the file writes it, with the name of its column or sparse feature.
struct NamedText {
  std::string name, text;
};

// Where the cells of a file stand whose header names them in another order than the job, or names
// more of them, or which lacks some in rows to predict.
struct CellOrder {
  static constexpr uint32_t kAbsent = UINT32_MAX;
  std::vector<uint32_t>
      cell_of_column;      // [data.columns]; kAbsent: not in the file, and not needed.
  uint32_t num_cells = 0;  // Of a line.
  bool label = true;       // Of formats without named columns: whether a row begins with its label.
  friend bool operator==(const CellOrder&, const CellOrder&) = default;
};

// Turns lines into rows. Any bytes are either a row or an error, never worse.
class RowParser {
 public:
  virtual ~RowParser() = default;
  // The order of the cells of the lines that follow; null: that of data.columns. It must live as
  // long as it is used.
  virtual void UseOrder(const CellOrder* order) { static_cast<void>(order); }
  // Fills `row`; after an error its contents mean nothing.
  virtual std::optional<RowError> Parse(std::string_view line, Row* row) = 0;
  // What stands in the line, for people: also of a line that is no row, as far as it can be cut.
  // Values beyond the last column have an empty name.
  virtual std::vector<NamedText> Values(std::string_view line) = 0;
};

// The parser of data.format; `labels` as in LabelsOf(job).
std::unique_ptr<RowParser> NewRowParser(const DataSpec& data, const std::vector<LabelSpec>& labels);

// The text with bytes that do not print escaped; cut where it is long.
std::string Printable(std::string_view value);

// "path:line:column: 'value': expected a number in column 'age'". Columns count characters from 1;
// long values are cut and bytes that do not print are escaped.
std::string DescribeRowError(const std::string& path, uint64_t line_number, std::string_view line,
                             const RowError& error);

// The treatment of a line that is no row.
enum class BadRows : uint8_t {
  kCounted,  // It is left out; more than data.max_bad_rows are an error.
  kRefused,  // The first one is an error.
  kKept      // An example of weight 0 stands in for it, the only one; for rows without labels.
};

// What a batch has of each example.
struct BatchShape {
  size_t num_numeric = 0, num_sparse = 0;
  uint32_t num_labels = 1;
  bool weights = false, groups = false;
  bool numbered = false;  // A row may give several examples or none: Batch::rows are kept.
};

// Collects rows into a batch.
//
// Rows with one key of every feature, the usual ones, wait side by side until there are enough to
// give each column several keys at once.
// Invariant: the batch and behind it the waiting rows are what was added, in order.
class BatchBuilder {
 public:
  // Room for `rows_expected` rows is made at once.
  BatchBuilder(const BatchShape& shape, uint32_t rows_expected);
  // `numeric` are the row's numbers behind their transforms. `number`: as of Batch::rows.
  void Add(const Row& row, const std::vector<float>& numeric, uint32_t number = 0);
  // What was added; the builder is empty again.
  Batch Finish(uint64_t first_row);

 private:
  static constexpr uint32_t kWaitingMax = 32;

  void AddSpecial(const Row& row, uint32_t number);
  void AddKeys(const Row& row);
  void AddWeights(const Row& row, size_t feature, SparseColumn* column);
  void AddWaiting();

  BatchShape shape_;
  bool plain_;  // One label, and nothing else that only some jobs have.
  uint32_t rows_expected_;
  Batch batch_;
  std::vector<Key> waiting_;  // [sparse features, kWaitingMax]
  uint32_t num_waiting_ = 0;
};

}  // namespace hdps
