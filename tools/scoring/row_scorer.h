// Scores rows by a checkpoint in memory, for several threads at once.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/base/thread_annotations.h"
#include "common/job/job_spec.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"
#include "tools/scoring/checkpoint_model.h"
#include "tools/scoring/predictions.h"
#include "tools/scoring/scoring_engine.h"
#include "worker/data/batch.h"
#include "worker/data/columnar/columns.h"

namespace hdps {

class TableRows;
struct DataSpec;

// What a row's scores become: the job's predictions, as hdps predict prints them, or what the loss
// takes: logits, numbers under squared_error, inner products under sampled_softmax.
enum class ScoreForm : uint8_t { kPredictions, kLogits };

// What a call gives besides the predictions.
struct ScoreWants {
  bool logits = false;
  bool unknown_keys = false;
  // Where parts of the rows end whose keys are counted apart, ascending to the number of rows;
  // empty: all rows are one part.
  std::span<const uint64_t> part_ends = {};
};

// Invariant: all of it is of the one version `step`.
struct ScoredRows {
  Clock step = 0;
  uint64_t rows = 0;
  std::vector<float> predictions, logits;  // [rows, scores_a_row()]; logits where they are wanted.
  // [parts, sparse features]: the keys of the rows of a part, and those without a row in the first
  // table of the feature; where they are wanted, and there are rows.
  std::vector<uint64_t> keys, unknown_keys;
};

// A checkpoint that scores rows without their labels.
//
// Invariant: scores are functions of the checkpoint and the row, with the bits of hdps predict. All
// members may be called by several threads at once: rows are shared, and each thread that scores
// has a model of its own. There are at most as many models as the executor has threads, made when
// they are first needed; who wants a further one waits.
class RowScorer {
 public:
  // Takes `path` and `which` as OpenCheckpoint does, and the job and its vocabulary from the
  // checkpoint. Models are where the job says. Requires: `files` and `executor` outlive the result.
  static Result<std::unique_ptr<RowScorer>> Open(FileSystem& files, const std::string& path,
                                                 WhichCheckpoint which, UnknownKeys unknown,
                                                 Executor& executor);
  // The same for a checkpoint that was found, with its rows in this form and models on the CPU. A
  // folder exported for serving (IsServingFolder) is mapped.
  static Result<std::unique_ptr<RowScorer>> Open(FileSystem& files, const FoundCheckpoint& found,
                                                 UnknownKeys unknown, RowForm form,
                                                 Executor& executor);
  // The same in form of kFlat with rows on disk: they are written into the folder `scratch`, which
  // is made for them and is gone with the result or before, and mapped. Gives their memory back
  // whenever the process has more than about `memory_limit` bytes. kInvalidArgument says how much
  // is needed if it has more without any row.
  static Result<std::unique_ptr<RowScorer>> OpenOnDisk(FileSystem& files,
                                                       const FoundCheckpoint& found,
                                                       UnknownKeys unknown, uint64_t memory_limit,
                                                       const std::string& scratch,
                                                       Executor& executor);
  ~RowScorer();

  const Job& job() const { return job_; }  // With its vocabulary.
  // Returns the data of rows in tables: columns by name. That of the job, if it is csv; for criteo
  // its columns I1 to I13 and C1 to C26. Other formats have no columns by name, and are refused.
  const DataSpec& columns() const { return *columns_; }
  const FoundCheckpoint& checkpoint() const { return loaded_->checkpoint(); }
  const CheckpointModel& loaded() const { return *loaded_; }
  CheckpointModel& loaded() { return *loaded_; }  // Its rows and model stay as they are.
  // Returns the scores of a row: one a class under softmax, else one a task; logits have the same
  // number.
  uint32_t scores_a_row() const { return scores_a_row_; }

  // Returns the scores of all rows of a table, [rows, scores_a_row()], by all threads that are
  // free. kInvalidArgument names a column that is missing, or the first row, from 0 on, that cannot
  // be read or whose score is not a number.
  Result<std::vector<float>> ScoreTable(std::shared_ptr<const ColumnTable> table, ScoreForm form);
  // The same for the rows of files, read as the job's data are. `paths` are those of --data: files,
  // folders, patterns. Requires: no delta is applied meanwhile.
  Result<std::vector<float>> ScoreFiles(const std::vector<std::string>& paths, ScoreForm form);

  // Returns the scores of all rows of a table, by the calling thread. Columns are as ScoreTable()
  // wants them; of a job whose format has no named columns it is the one column "row", of lines of
  // its data.
  Result<ScoredRows> Score(std::shared_ptr<const ColumnTable> table, const ScoreWants& wants);

  // Brings the checkpoint to that of `delta`, which builds on it, while others score: each answer
  // is of the one or the other. Changes only rows of the delta, and removes those that it removes.
  // Everything is read and checked before the first row is changed. Only of RowForm::kFlat, and by
  // one thread at a time. kCorruption and kInvalidArgument say what is wrong with the delta.
  Status Apply(const CheckpointPart& delta, const DeltaHooks& hooks = {});
  Clock step() const { return loaded_->step(); }

  // As KeysOfFeature().
  Result<std::vector<Key>> KeysOf(const std::string& feature,
                                  std::shared_ptr<const ColumnTable> values) const;

  // Copies the weights of keys of a sparse table into `rows`, [keys, dim]. Keys without a row read
  // by `unknown` of Open().
  void Lookup(TableId table, std::span<const Key> keys, std::span<float> rows);
  // Returns for each key whether the table has a row of it.
  std::vector<bool> Contains(TableId table, std::span<const Key> keys) const;

 private:
  struct Engine {
    std::unique_ptr<ScoringEngine> scoring;
    std::unique_ptr<TableRows> reader;  // Of the last table; null: there was none.
  };
  class Lease;

  RowScorer(FileSystem& files, Executor& executor);
  static Result<std::unique_ptr<RowScorer>> OpenJob(FileSystem& files, const FoundCheckpoint& found,
                                                    Job job, UnknownKeys unknown, RowForm form,
                                                    Executor& executor);
  // Waits for an engine, or makes one.
  Result<std::unique_ptr<Engine>> Take() HDPS_EXCLUDES(mutex_);
  // Takes an engine that is idle, or makes one; null if others have all.
  Result<std::unique_ptr<Engine>> TakeIdle() HDPS_EXCLUDES(mutex_);
  void GiveBack(std::unique_ptr<Engine> engine) HDPS_EXCLUDES(mutex_);
  Result<std::unique_ptr<Engine>> NewEngine(bool first);
  // Reads rows of a table, without labels.
  Result<Batch> ReadBatch(TableRows& rows, uint64_t begin, uint64_t end) const;
  // Gives the engine the reader of a table.
  Status UseTable(std::shared_ptr<const ColumnTable> table, Engine* engine) const;
  // Scores all rows. Returns false if the step changed between two batches.
  Result<bool> ScoreAll(const ScoreWants& wants, Engine* engine, ScoredRows* scored);
  // Returns the scores of the engine's last pass in this form. `first_number`: that of its first
  // row, for messages.
  Result<std::vector<float>> InForm(uint64_t first_number, ScoreForm form,
                                    ScoringEngine& engine) const;
  // Returns the shard of each key if the table is cut by field; else an empty list.
  std::vector<uint32_t> FieldShardsOf(TableId table, std::span<const Key> keys) const;

  FileSystem& files_;
  Executor& executor_;
  const std::unique_ptr<MonotonicClock> clock_;
  Job job_;
  std::unique_ptr<const DataSpec> columns_;
  std::unique_ptr<CheckpointModel> loaded_;
  std::unique_ptr<Predictions> predictions_;
  uint32_t num_labels_ = 1;  // As Batch::num_labels: models want labels, which mean nothing here.
  uint32_t scores_a_row_ = 1;

  Mutex mutex_;
  ConditionVariable given_back_;
  std::vector<std::unique_ptr<Engine>> idle_ HDPS_GUARDED_BY(mutex_);
  int made_ HDPS_GUARDED_BY(mutex_) = 0;  // Engines that exist or are being made.
};

}  // namespace hdps
