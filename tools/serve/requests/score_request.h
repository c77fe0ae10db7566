// What a request asks of a served model, and what is answered, whatever protocol it came by.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "worker/data/columnar/columns.h"

namespace hdps {

// Limits of one request; beyond them it is refused with 413.
inline constexpr uint64_t kRequestBytesMax = 16 << 20;
inline constexpr uint64_t kRequestRowsMax = 8192;
// Bytes of an id, which the log of requests writes beside each row; a longer one is refused with
// 400.
inline constexpr size_t kRequestIdBytesMax = 512;
// Items a user where a request does not say how many.
inline constexpr uint32_t kTopKDefault = 10;

enum class ScoreOutput : uint8_t {
  kPrediction,  // "probability", "probabilities" [n, classes], "score"; one a task.
  kLogit,       // "logit"
  kUserVector,  // "user_vector"; of the recipe two_tower.
  kItemVector,  // "item_vector"; of the recipe two_tower.
  kTopK         // "top_k"; of the recipe two_tower with the items at hand.
};

// Rows to score. The table's columns are inputs by name; an input that was sent once for all rows
// is a dictionary of one value. Of a job whose format has no named columns there is one column,
// "row", of texts: lines of the data, with or without a label.
struct ScoreRequest {
  std::shared_ptr<const ColumnTable> rows;
  std::vector<ScoreOutput> outputs;  // In the order of the answer; empty: kPrediction.
  uint32_t top_k = 0;                // Number of items a user; for kTopK.
  std::string id = {};               // As the caller names it; the log of requests tells it.
};

// One output of all rows: [rows, width] numbers, or texts where `texts` is not empty.
struct OutputColumn {
  std::string name;
  uint32_t width = 1;
  std::vector<float> numbers;
  std::vector<std::string> texts;
};

// Invariant: all of it is of the one version `step`.
struct ScoreAnswer {
  Clock step = 0;
  uint64_t rows = 0;
  std::vector<OutputColumn> outputs;
  // No other answer of the batch comes before this one: a batch may have the rows of several
  // requests, of which each has an answer.
  bool begins_batch = true;
  // [sparse features], in the order of ServedModel::features(): the keys of all rows, and those
  // without a row.
  std::vector<uint64_t> keys, unknown_keys;
};

// Rows of a table by keys, or by values of a feature.
struct LookupRequest {
  std::string table;
  std::vector<Key> keys;
  std::string feature;                        // Not empty: `values` are texts of this feature.
  std::shared_ptr<const ColumnTable> values;  // One column, named as the feature.
};

struct LookupAnswer {
  Clock step = 0;
  uint32_t dim = 0;
  std::vector<float> rows;    // [keys, dim]; a key without a row reads as the model reads it.
  std::vector<bool> has_row;  // [keys]
};

// One input or output as metadata tells it.
struct TensorNote {
  std::string name;
  std::string datatype;  // "BYTES", "FP32"
  uint32_t width = 1;    // Shape [-1], or [-1, width] where width > 1.
};

// What a model takes and gives; it is the same for all of its versions.
struct ModelNote {
  std::string name;
  std::vector<TensorNote> inputs, outputs;
  bool has_columns = true;  // Else there is the one input "row".
};

}  // namespace hdps
