// Opens data files whose rows are records of typed cells instead of lines of text.
#pragma once

#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/platform/file_system.h"
#include "worker/data/compressed_file.h"

namespace hdps {

struct DataSpec;

// Turns the records of files into lines (cell_line.h), so that rows are shuffled, split, held out,
// kept and counted as those of text are.
//
// A line of a Parquet file has a cell for each column of RecordColumns(); one of a TFRecord file
// has the bytes of the record, which RecordCells turns into such a line. A file's bytes are its
// lines, each behind 32 bits of its length. For use by one thread.
class RecordFiles {
 public:
  virtual ~RecordFiles() = default;
  // kInvalidArgument, here or from Read(), names the file, the column and the mend: bytes that are
  // no such file or damaged, a column that is not there or of a type that is not read, and columns
  // of other types than in the file that was opened first.
  virtual Result<std::unique_ptr<UnpackedFile>> Open(FileSystem& files,
                                                     const std::string& path) = 0;
  // Lets lines of files that are opened from here on be packed (packed_order.h), which are faster
  // to parse and have no texts. For a caller that neither hashes lines nor asks for their values.
  virtual void PackLines() {}
};

// Makes the opener for data.format; null if its rows are lines of text or images. Labels, weights
// and groups may be absent unless `labels_read`.
std::shared_ptr<RecordFiles> NewRecordFiles(const DataSpec& data, bool labels_read);

}  // namespace hdps
