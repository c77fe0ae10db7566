// Reads batches from files: as a stream, shuffled by seed, split by worker.
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
class RowCaches;
class RowWait;
struct DataSpec;
struct TopicReading;

// A shuffle window is full with this many bytes of lines.
inline constexpr size_t kWindowBytesMax = size_t{1} << 30;

// Selects the rows that a reader gives. The stream of an epoch is the same for every worker: the
// rows of the files, shuffled within a window by (seed, epoch). Step b has rows [b * batch_size, (b
// + 1) * batch_size) of it. Part p of N of a step has the rows at positions congruent to p modulo
// N, so all rows are read exactly once, and the parts differ by at most one row an epoch; with
// `own_rows` it has these rows of each step. A bad row keeps its position, so it moves no other
// row. The last step of an epoch has what is left, or is filled up with the rows that the epoch
// began with.
struct ReaderOptions {
  // Rows of each step from the begin up to the end.
  struct Range {
    uint32_t begin = 0, end = 0;
  };
  uint64_t seed = 1;
  uint32_t batch_size = 1024;  // Rows of the whole step.
  uint32_t part = 0, num_parts = 1;
  std::optional<Range> own_rows = std::nullopt;  // Of parts that are not alike (data.parts).
  bool shuffle = true;
  RowSide side = RowSide::kAll;  // Split by data.validation_share and the seed.
  // Labels are whole numbers below this: 2 under logloss (where -1 counts as 0), the width of the
  // logits under softmax; under kLabelsAnyNumber any finite numbers. A row with another label is
  // bad.
  // Under kLabelsNotRead labels are not needed, and all are 0; a file may lack the cells of labels,
  // weights and groups, which are ignored: see AbsentCells.
  uint32_t num_classes = 2;
  // Labels of several tasks, as LabelsOf(job); empty: one label with num_classes.
  std::vector<LabelSpec> labels = {};
  BadRows bad_rows = BadRows::kCounted;
  // Pool for making negative examples; null: none are made.
  std::shared_ptr<ItemPool> items = nullptr;
  // Not null: the stream is the log of DataSpec::follow, and this waits for its rows.
  std::shared_ptr<RowWait> follow = nullptr;
  // Not null: the stream is a topic of Kafka (kafka/topic_reader.h).
  std::shared_ptr<const TopicReading> topic = nullptr;
  // Keeps and finds parsed rows of files; null: text is read.
  std::shared_ptr<RowCaches> cache = nullptr;
  // Parses the rows of large batches on its threads; null for the caller's thread.
  Executor* executor = nullptr;
  bool fill_last = false;                 // Fills the last step up with the epoch's first rows.
  size_t window_bytes = kWindowBytesMax;  // For tests with a smaller one.

  // Is true if the row at `position`, of the step that begins at `first_row`, is one of this part.
  bool Owns(uint64_t position, uint64_t first_row) const {
    if (!own_rows) return position % num_parts == part;
    return position - first_row >= own_rows->begin && position - first_row < own_rows->end;
  }
  // Returns the index in such a step of the part's first row. The next ones are Stride() apart.
  uint32_t FirstOwn(uint64_t first_row) const {
    if (own_rows) return own_rows->begin;
    return (part + num_parts - static_cast<uint32_t>(first_row % num_parts)) % num_parts;
  }
  uint32_t Stride() const { return own_rows ? 1 : num_parts; }
  // Returns the number of rows of the part in a step, or one less.
  uint32_t RowsOfStep() const {
    return own_rows ? own_rows->end - own_rows->begin : batch_size / num_parts;
  }

  std::vector<LabelSpec> LabelsWanted() const {
    return labels.empty() ? std::vector<LabelSpec>{{"", num_classes}} : labels;
  }
};

// From this many parts on, a part of a shuffled stream reads only its own rows, by an index that it
// makes in its first epoch. With fewer parts the index does not pay: it saves about 70 ns for each
// row of other parts, and costs about 3 us for each row of its own.
inline constexpr uint32_t kPartsMany = 64;

// Gives the batches of one worker in order. Memory does not depend on the size of the files.
class BatchReader {
 public:
  virtual ~BatchReader() = default;
  // Returns this part of the next step, which may be empty in a ragged last step; nothing at the
  // end of the epoch. kInvalidArgument after more than max_bad_rows bad rows of this part in one
  // epoch: "file:line:column: 'value': expected a number in column 'age' ...".
  virtual Result<std::optional<Batch>> Next() = 0;
  // Starts an epoch after its first `skip_steps` steps (resuming).
  virtual Status StartEpoch(uint32_t epoch, uint64_t skip_steps) = 0;
  // Ends a wait for rows that are not there yet, and all later ones: kCancelled. Any thread may
  // call it.
  virtual void Stop() {}
  virtual uint64_t bad_rows() const = 0;  // Bad rows of this part in this epoch.
  // Sets the bad rows that another reader has counted.
  virtual void SetBadRows(uint64_t count) = 0;
  virtual uint64_t bytes_read() const = 0;  // Unpacked bytes since construction.
  virtual double progress() const = 0;      // Share of the epoch's bytes that has been read, 0..1.
};

// Makes a reader. `paths` is data.train or data.eval; `files` must outlive the reader. Opens no
// file before StartEpoch, but kInvalidArgument names a missing file at once.
Result<std::unique_ptr<BatchReader>> NewBatchReader(FileSystem& files, const DataSpec& data,
                                                    const std::vector<std::string>& paths,
                                                    const ReaderOptions& options);

// Counts the rows of the stream over all parts, including bad ones. Reads and unpacks all files and
// finds the ends of lines.
Result<uint64_t> CountRows(FileSystem& files, const DataSpec& data,
                           const std::vector<std::string>& paths, const ReaderOptions& options);

}  // namespace hdps
