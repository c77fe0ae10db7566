// Sorts columns into those that may be keys, lists, numbers alone, and those that are not read.
#include "tools/prepare/layout/parquet_layout.h"

#include <memory>

#include "common/job/spec/data_spec.h"
#include "worker/data/columnar/column_sources.h"
#include "worker/data/records/parquet_source.h"
#include "worker/data/row.h"

namespace hdps {
namespace {

bool Fits(const CellType& type, ColumnType column) {
  ColumnSpec spec;
  spec.type = column;
  return WhyNotReadable(spec, type).empty();
}

}  // namespace

Result<DataLayout> TellParquet(FileSystem& files, const std::string& path) {
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<ParquetSource> source,
                        ParquetSource::Open(files, path));
  if (source->num_rows() == 0) {
    return Status(Code::kInvalidArgument,
                  path + ": there is no row in this file; give a file with rows");
  }
  DataLayout layout;
  layout.format = DataFormat::kParquet;
  for (const ColumnTable::Column& column : source->columns()) {
    const bool number = Fits(column.type, ColumnType::kNumeric);
    if (!number && !Fits(column.type, ColumnType::kMulti)) {
      layout.notes.push_back("column '" + Printable(column.name) + "' has the type " +
                             column.type.name + ", which is not read: it is left out");
      continue;
    }
    layout.names.push_back(column.name);
    if (!number) layout.lists.insert(column.name);
    if (number && !Fits(column.type, ColumnType::kCategorical)) {
      layout.fractions.insert(column.name);
    }
  }
  if (layout.names.empty()) {
    return Status(Code::kInvalidArgument,
                  path +
                      ": this Parquet file has no column of a type that is read: expected "
                      "integers, numbers, bools, texts, or lists of them");
  }
  return layout;
}

}  // namespace hdps
