// Factories of the parsers of all formats.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/data/row.h"

namespace hdps {

class ColumnTable;
struct DataSpec;
struct LabelSpec;

// Requires: `data` has passed ParseJob or NewBatchReader's checks. Each parser gives the base
// features of FeaturesOf(data), in order; derived features are added later.

// Parses cells between delimiters; "a cell in quotes", with "" for a quote inside. Blanks around a
// cell are ignored. A missing number is kMissingNumber, a missing category is the value "", and a
// missing multi-valued cell has no keys.
std::unique_ptr<RowParser> NewCsvParser(const DataSpec& data, const std::vector<LabelSpec>& labels);

// Parses a label, 13 integers and 26 categories between tabs; an empty cell is missing.
std::unique_ptr<RowParser> NewCriteoParser(const DataSpec& data, uint32_t num_classes);

// Parses the three formats of sparse entries:
// libsvm: "label index:value ...", with "# ..." at the end ignored. The index gives the key, the
// value its weight; an index alone has weight 1.
// libffm: "label field:index:value ..."; field f is sparse feature f.
// libfm: like libsvm, but every row has data.num_fields entries; entry f of a row, from 0, belongs
// to sparse feature f.
std::unique_ptr<RowParser> NewLibsvmParser(const DataSpec& data, uint32_t num_classes);

// Parses one image: the byte of its label, then one byte per pixel, as from OpenImages.
std::unique_ptr<RowParser> NewIdxParser(const DataSpec& data, uint32_t num_classes);

// Parses rows of a table, whose lines are row numbers (columnar/table_files.h), with the keys and
// numbers of a CSV file that has the texts of the cells (columnar/cell_reader.h). The order of the
// columns is that of their names; text settings of the data do not count. kInvalidArgument if the
// table lacks a column or has one of another type; `name` stands for the table.
Result<std::unique_ptr<RowParser>> NewColumnParser(const DataSpec& data,
                                                   const std::vector<LabelSpec>& labels,
                                                   std::shared_ptr<const ColumnTable> table,
                                                   const std::string& name);

// Parses the lines of records, which are typed cells (records/cell_line.h) in the order of
// RecordColumns(data), with the keys and numbers of a CSV file that has their texts.
std::unique_ptr<RowParser> NewCellLineParser(const DataSpec& data,
                                             const std::vector<LabelSpec>& labels);

// Parses the records of tfrecord and jsonl, whose rows are those of their lines of cells.
std::unique_ptr<RowParser> NewRecordParser(const DataSpec& data,
                                           const std::vector<LabelSpec>& labels);

// Gives the rows of `parser` with the keys of data.vocabulary: those of other values become the
// OtherValuesKey of their feature. Requires: the vocabulary was loaded.
std::unique_ptr<RowParser> NewVocabularyParser(std::unique_ptr<RowParser> parser,
                                               const DataSpec& data);

}  // namespace hdps
