// Where batches come from: files, read as a stream, shuffled by seed, split by worker.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/job/job_facts.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "worker/data/batch.h"
#include "worker/data/line_reader.h"
#include "worker/data/row.h"

namespace hdps {

class ItemPool;
struct DataSpec;

// Which rows of the stream a reader gives. The stream of an epoch is the same for every worker: the
// files' rows, shuffled within a window by (seed, epoch). Rows [b * batch_size, (b + 1) *
// batch_size) of it are step b. Of a step, part p of N has the rows at positions congruent to p
// modulo N, so all rows are read exactly once and the parts differ by at most one row an epoch. A
// bad row keeps its position, so it moves no other row.
struct ReaderOptions {
  uint64_t seed = 1;
  uint32_t batch_size = 1024;  // Of the whole step.
  uint32_t part = 0, num_parts = 1;
  bool shuffle = true;
  RowSide side = RowSide::kAll;  // By data.validation_share and the seed.
  // Labels are whole numbers below this: 2 under logloss (where -1 counts as 0), the width of
  // the logits under softmax; under kLabelsAnyNumber any finite numbers. Another label makes a bad
  // row.
  // kLabelsNotRead: none is needed, all are 0, and a file may come without their cells, and those
  // of weights and groups, which are not looked at: see AbsentCells.
  uint32_t num_classes = 2;
  // Of several tasks, as LabelsOf(job); empty: one label, of num_classes.
  std::vector<LabelSpec> labels = {};
  BadRows bad_rows = BadRows::kCounted;
  // Whence negative examples are made; null: none are.
  std::shared_ptr<ItemPool> items = nullptr;
  // Whose threads parse the rows of large batches; null: the caller's does.
  Executor* executor = nullptr;

  std::vector<LabelSpec> LabelsWanted() const {
    return labels.empty() ? std::vector<LabelSpec>{{"", num_classes}} : labels;
  }
};

// One of so many parts or more of a shuffled stream reads its own rows alone, by an index that it
// makes in its first epoch. Fewer parts lose by it: the index spares a part some 70 ns for each row
// of the others, and costs it about 3 us for each of its own.
inline constexpr uint32_t kPartsMany = 64;

// Gives the batches of one worker in order. Memory does not depend on the size of the files.
class BatchReader {
 public:
  virtual ~BatchReader() = default;
  // The next step's part; a part of a ragged last step may be empty. None at the end of the epoch.
  // kInvalidArgument after more than max_bad_rows bad rows of this part in one epoch:
  // "file:line:column: 'value': expected a number in column 'age' ...".
  virtual Result<std::optional<Batch>> Next() = 0;
  // Starts the given epoch behind its first `skip_steps` steps (resuming).
  virtual Status StartEpoch(uint32_t epoch, uint64_t skip_steps) = 0;
  virtual uint64_t bad_rows() const = 0;        // Of this part, in the epoch at hand.
  virtual void SetBadRows(uint64_t count) = 0;  // Those that another reader met before.
  virtual uint64_t bytes_read() const = 0;      // Unpacked, since the reader was made.
  virtual double progress() const = 0;  // Part of the epoch's bytes that has been read, 0..1.
};

// `paths` is data.train or data.eval; `files` must outlive the reader. Opens nothing before
// StartEpoch, but kInvalidArgument names a missing file at once.
Result<std::unique_ptr<BatchReader>> NewBatchReader(FileSystem& files, const DataSpec& data,
                                                    const std::vector<std::string>& paths,
                                                    const ReaderOptions& options);

// How many rows the stream has, over all parts; bad ones count. Takes as long as to read and unpack
// the files and to find the ends of their lines.
Result<uint64_t> CountRows(FileSystem& files, const DataSpec& data,
                           const std::vector<std::string>& paths, const ReaderOptions& options);

}  // namespace hdps
