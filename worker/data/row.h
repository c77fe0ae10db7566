// Rows as a parser gives them, and batches built of rows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/hash.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "worker/data/batch.h"

namespace hdps {

class ColumnTable;
struct DataSpec;
struct LabelSpec;

// A missing number. Only missing numbers are not finite.
inline constexpr double kMissingNumber = std::numeric_limits<double>::quiet_NaN();

// Returns the key of an id of a vocabulary, salted as FeatureKey is. For one vocabulary this is
// one-to-one, so no two ids share a row of a table.
inline Key IdKey(uint64_t feature_salt, uint64_t id) { return CombineKeys(feature_salt, id); }

// One row of the data.
//
// Invariant: sparse feature f owns keys[KeyBegin(f) .. key_ends[f]); key_ends never decreases and
// ends at keys.size(); weights is empty (all ones) or as long as keys. Reused from row to row, so
// that parsing allocates nothing.
struct Row {
  float label = 0;
  std::vector<float> task_labels;  // [tasks], if there are several; `label` is unused then.
  float weight = 1;                // Weight of the example.
  Key group = 0;
  uint32_t unknown_ids = 0;     // Ids without a row; their keys are not among `keys`.
  uint64_t positive_texts = 0;  // Bit of the label's text, as in Batch::positive_texts.
  std::vector<double> numbers;  // As in the file; kMissingNumber if missing.
  std::vector<Key> keys;
  std::vector<float> weights;
  std::vector<uint32_t> key_ends;

  void Clear();
  uint32_t KeyBegin(size_t feature) const { return feature == 0 ? 0 : key_ends[feature - 1]; }
  void EndFeature() { key_ends.push_back(static_cast<uint32_t>(keys.size())); }
  // Adds a feature with this one key.
  void AddFeature(Key key) {
    keys.push_back(key);
    EndFeature();
  }
};

// A row with one key for each feature and no weights of keys, whose values lie somewhere, without
// alignment.
struct RowInPlace {
  const std::byte* labels = nullptr;  // [labels], float.
  float weight = 1;
  Key group = 0;
  uint32_t unknown_ids = 0;
  uint64_t positive_texts = 0;
  const std::byte* numbers = nullptr;  // [numbers], float after their transforms or double before.
  const std::byte* keys = nullptr;     // [sparse features], Key.
};

// Tells why a line is no row. The views point into the line, or live as long as the parser.
struct RowError {
  std::string_view value;     // Its address gives its place in the line.
  std::string_view column;    // The column's name; empty: the row as a whole.
  std::string_view expected;  // "a number"
};

// A value as the file writes it, with the name of its column or sparse feature.
struct NamedText {
  std::string name, text;
};

// Cell order of a file whose header has another order than the job or more columns, or of rows to
// predict that lack cells.
struct CellOrder {
  static constexpr uint32_t kAbsent = UINT32_MAX;
  std::vector<uint32_t>
      cell_of_column;      // [data.columns]; kAbsent: not in the file, and not needed.
  uint32_t num_cells = 0;  // Cells per line.
  bool label = true;       // For formats without named columns: rows begin with a label.
  friend bool operator==(const CellOrder&, const CellOrder&) = default;
};

// Turns lines into rows. Any bytes give either a row or an error.
class RowParser {
 public:
  virtual ~RowParser() = default;
  // Of parsers of a table: the following lines are rows of this one, whose columns have the same
  // names and types. Null: no lines follow until another table comes.
  virtual void UseTable(std::shared_ptr<const ColumnTable> table) { static_cast<void>(table); }
  // Sets the cell order of the following lines; null: that of data.columns. `order` must live as
  // long as it is used.
  virtual void UseOrder(const CellOrder* order) { static_cast<void>(order); }
  // Returns what to keep of a line that is parsed later: the line itself, or bytes that give the
  // same row sooner. Valid until the next call.
  virtual std::string_view Hold(std::string_view line) { return line; }
  // Fills `row`; after an error its contents are void.
  virtual std::optional<RowError> Parse(std::string_view line, Row* row) = 0;
  // Returns the values in a line for messages, even if it is no row, as far as it can be cut.
  // Values after the last column have an empty name.
  virtual std::vector<NamedText> Values(std::string_view line) = 0;
};

// Makes the parser of data.format for lines of text; `labels` as in LabelsOf(job).
std::unique_ptr<RowParser> NewRowParser(const DataSpec& data, const std::vector<LabelSpec>& labels);
// Makes the parser of the lines of `paths`, which may name a table. kInvalidArgument if the table
// does not fit the job.
Result<std::unique_ptr<RowParser>> NewParserOf(const DataSpec& data,
                                               const std::vector<std::string>& paths,
                                               const std::vector<LabelSpec>& labels);

// Returns the text with unprintable bytes escaped, and cut if it is long.
std::string Printable(std::string_view value);

// "path:line:column: 'value': expected a number in column 'age'". Columns count characters from 1;
// long values are cut, and unprintable bytes are escaped.
std::string DescribeRowError(const std::string& path, uint64_t line_number, std::string_view line,
                             const RowError& error);

// The same without the column of characters, for a row at `place`.
std::string DescribeCellError(const std::string& place, const RowError& error);

// How a line that is no row is treated.
enum class BadRows : uint8_t {
  kCounted,  // It is left out; more than data.max_bad_rows are an error.
  kRefused,  // The first one is an error.
  kKept      // One example of weight 0 replaces it; for rows without labels.
};

// The parts of an example in a batch.
struct BatchShape {
  size_t num_numeric = 0, num_sparse = 0;
  uint32_t num_labels = 1;
  bool weights = false, groups = false;
  bool ids = false;       // Some column has ids.
  bool numbered = false;  // A row may give several examples or none, so Batch::rows is filled.
};

// Collects rows into a batch.
//
// Rows with one key per feature, the usual case, are buffered, or their places are, until there are
// enough to append several keys to each column at once.
// Invariant: the batch followed by the buffered rows is what was added, in order.
class BatchBuilder {
 public:
  // Reserves memory for `rows_expected` rows.
  BatchBuilder(const BatchShape& shape, uint32_t rows_expected);
  // Adds a row. `numeric` are its numbers after their transforms; `number` as in Batch::rows.
  void Add(const Row& row, const std::vector<float>& numeric, uint32_t number = 0);
  // Does the same for a row whose numbers are transformed. Its keys are read later: they must stay
  // where they are until Finish().
  void AddInPlace(const RowInPlace& row, uint32_t number = 0);
  // Returns the batch and leaves the builder empty.
  Batch Finish(uint64_t first_row);

 private:
  static constexpr uint32_t kWaitingMax = 32;

  // Adds what only some jobs have, of a Row or a RowInPlace.
  template <typename AnyRow>
  void AddSpecial(const AnyRow& row, uint32_t number);
  // Adds all parts of an example but its keys.
  void AddOthers(const Row& row, const std::vector<float>& numeric, uint32_t number);
  void AddOneKeyEach(const Row& row);
  void AddKeys(const Row& row);
  void AddWeights(const Row& row, size_t feature, SparseColumn* column);
  void AddWaiting();
  void AddPlaces();
  void AppendKeys(const Key* keys, uint32_t count, SparseColumn* column);

  BatchShape shape_;
  bool plain_;  // The batch has none of the parts that only some jobs have.
  uint32_t rows_expected_;
  Batch batch_;
  std::vector<Key> waiting_;  // [sparse features, kWaitingMax]
  uint32_t num_waiting_ = 0;
  // The numbers and keys of rows that are read where they lie. Either these wait or the keys above.
  std::array<const std::byte*, kWaitingMax> numbers_at_ = {}, keys_at_ = {};
  uint32_t num_places_ = 0;
};

}  // namespace hdps
