// Messages between a process that serves predictions and rows, and those who ask it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/buffer.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/protocol/message_kind.h"

namespace hdps {

// Limit on the columns of a request.
inline constexpr size_t kSentColumnsMax = 4096;

// The kind of a column's cells decides in which section they lie.
enum class CellForm : uint8_t { kTexts = 0, kIntegers, kFloats, kDoubles };

// One column of rows, whose cells follow those of the columns before it in the section of its form.
//
// A column of texts has one number more than cells in `ends`: where its first text begins in
// `texts`, and where each ends. A column of lists of texts has one number more than cells before
// these: 0, and how many of its texts lie before the end of each list.
struct SentColumn {
  std::string name;
  CellForm form = CellForm::kTexts;
  uint32_t cells = 0;  // As many as there are rows, or 1, which counts for all rows.
  bool lists = false;  // Each cell is a list; of texts alone.
};

// The name of an output that is asked for.
struct SentName {
  std::string name;
};

// Asks for predictions of rows. Without outputs it asks for the predictions, and without columns
// for what the model takes and gives.
//
// With `table` it asks for rows of that table: by its one column, of texts of the feature whose
// name it has, or of integers without a name, which are the bits of keys.
struct PredictRequest {
  static constexpr MessageKind kKind = MessageKind::kPredictRequest;
  std::string model;  // Empty: the only one.
  Clock step = -1;    // The version that is to answer; -1: the one that there is.
  std::vector<SentName> outputs;
  uint32_t top_k = 0;  // Items a user of the output top_k; 0: the usual number.
  uint32_t rows = 0;
  std::vector<SentColumn> columns;
  Buffer ends;      // uint32
  Buffer texts;     // Bytes.
  Buffer integers;  // int64
  Buffer floats;    // float; NaN is a missing cell, as "" is among texts.
  Buffer doubles;   // double
  std::string table = {};
  std::string id = {};  // As the caller names the request; the log of requests tells it.
};

// One output: width values for each row in `numbers`, or as many texts, which lie as those of a
// SentColumn.
struct SentOutput {
  std::string name;
  uint32_t width = 1;
  bool texts = false;
};

// One input or output of a model, as its metadata tell it.
struct SentTensor {
  std::string name;
  std::string datatype;
  uint32_t width = 1;
};

// The answer about rows of a table has two outputs, "rows" [rows, dim] and "has_row" [rows], which
// is 1 for a key that the table has and otherwise 0.
struct PredictReply {
  static constexpr MessageKind kKind = MessageKind::kPredictReply;
  Code code = Code::kOk;
  std::string message;
  std::string model;
  Clock step = -1;  // The version of which all outputs are.
  uint32_t rows = 0;
  std::vector<SentOutput> outputs;
  // The model's, where the request had no columns.
  std::vector<SentTensor> takes, gives;
  bool ready = false;  // A version is there.
  Buffer numbers;      // float
  Buffer ends;         // uint32
  Buffer texts;        // Bytes.
};

}  // namespace hdps
