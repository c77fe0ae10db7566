// Turns records of files that have one behind the other into lines of cells.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "worker/data/records/cell_line.h"
#include "worker/data/row.h"

namespace hdps {

struct DataSpec;

// Reads records of data.format tfrecord or jsonl. For use by one thread.
class RecordCells {
 public:
  virtual ~RecordCells() = default;
  // Appends the record's cells to `line`, as cell_line.h has them, in the order of RecordColumns().
  // After an error, whose texts last until the next call, nothing was appended.
  virtual std::optional<RowError> Write(std::string_view record, CellLineWriter* line) = 0;
};

// Makes the reader for data.format; null if its rows are no such records. Unless `labels_read`,
// labels, weights and groups of any type are ignored.
std::unique_ptr<RecordCells> NewRecordCells(const DataSpec& data, bool labels_read);

// A record is a tf.train.Example.
std::unique_ptr<RecordCells> NewExampleCells(const DataSpec& data, bool labels_read);
// A record is a line with a JSON object.
std::unique_ptr<RecordCells> NewJsonCells(const DataSpec& data, bool labels_read);
// Writes the same cells by a parser that is slower, takes integers beyond 64 bits as fractions, and
// says what is wrong.
std::unique_ptr<RecordCells> NewJsonEventCells(const DataSpec& data, bool labels_read);

}  // namespace hdps
