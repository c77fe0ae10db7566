// Prepares steps ahead of their use: a thread of its own turns files into batches whose keys are
// found and split by server.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/bounded_queue.h"
#include "common/base/status.h"
#include "common/net/section_allocator.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"
#include "common/protocol/manifest_parts.h"
#include "worker/cache/hot_split.h"
#include "worker/data/batch_reader.h"
#include "worker/exchange/activity_board.h"
#include "worker/exchange/key_split.h"
#include "worker/model/step_parts.h"
#include "worker/step/batch_stream.h"

namespace hdps {

struct Job;
struct View;

// The tables that a step reads and writes at the servers, in the order of a request's lists.
struct SplitPlan {
  std::shared_ptr<const View> view;  // Null: nothing is split.
  // Keys of the dense table's chunks, which every step with examples reads. Empty under allreduce,
  // where the servers are not asked for them.
  std::span<const Key> dense_keys;
  // The rows cached at the worker; only other keys are split by server. Null: no rows are cached.
  std::shared_ptr<HotKeyRegistry> hot;
  // Allocates the key sections, so that they are sent without a copy; null: they lie in the
  // process's own memory. Outlives the pipeline and its steps.
  SectionAllocator* sections = nullptr;
};

// The keys of a table that is cut by column: each key of the step once for every slice, side by
// side, so that the slices' rows read one after another are the whole row.
struct SlicedKeys {
  std::vector<Key> keys;
  std::vector<uint32_t> shards;  // [keys]
};

struct PreparedStep {
  StepParts parts;
  // [lists of the step], each over the tables of the plan: all of the job, or all but the dense
  // one, which only the first list has.
  std::vector<KeySplit> lists;
  std::vector<HotSplit> hot;            // [groups of the plan's registry]
  std::vector<SlicedKeys> sliced;       // [tables]; empty unless the table is cut by column.
  uint64_t bad_rows = 0;                // The reader's count so far.
  std::vector<PartitionSpan> messages;  // As of the batch: what the step has of a topic.
  double progress = 0;                  // The reader's progress: share of the epoch's bytes, 0..1.
  // How long the step was read and its keys were sought, and when that had been done.
  int64_t read_ns = 0, read_end_ns = 0;
  int64_t dedup_ns = 0, dedup_end_ns = 0;
};

struct PipelineOptions {
  std::vector<std::string> paths;
  ReaderOptions reader;
  bool labels = true;  // False: labels are not read, and rows may lack them.
  PartCount parts;     // Of a step.
  // Bound the memory: at most this many steps wait, one is being made, and this many are in use.
  size_t steps_ahead = 4;
  size_t steps_in_use = 2;
  uint32_t epoch = 0;       // Epoch to start in.
  uint64_t skip_steps = 0;  // Number of its steps to skip.
  SplitPlan plan;
  // Helps the reader's thread with steps of many keys; null: it works alone.
  Executor* executor = nullptr;
  ActivityBoard* board = nullptr;  // Is told of waits for a step; null: no one is told.
  // Is called on the pipeline's thread when TryNext() has a step more or the end; may be empty.
  std::function<void()> on_step = {};
};

// Returns the options of worker `rank` of `workers` that trains on the job's data, from the begin
// of the first epoch on. Requires: data.parts is empty or has `workers` numbers.
PipelineOptions TrainingOptions(const Job& job, uint32_t rank, uint32_t workers);

// Makes the reader of these options; `files` and the options' executor must outlive it.
// kInvalidArgument when a file is missing.
Result<std::unique_ptr<BatchReader>> ReaderOf(const Job& job, FileSystem& files,
                                              const PipelineOptions& options);

// Gives the steps of one epoch in order.
//
// Invariant: at most steps_ahead + 1 + steps_in_use steps exist.
class StepPipeline {
 public:
  // `job`, `files` and `clock` must outlive it. kInvalidArgument when a file is missing.
  static Result<std::unique_ptr<StepPipeline>> Start(const Job& job, FileSystem& files,
                                                     MonotonicClock& clock,
                                                     const PipelineOptions& options);
  ~StepPipeline();

  // The next step; null at the end of the epoch. After an error or the end there is no next.
  Result<std::unique_ptr<PreparedStep>> Next();
  // The same without waiting: null when none is ready.
  Result<std::unique_ptr<PreparedStep>> TryNext();
  // Is true if neither gives a step any more.
  bool at_end() { return ready_.at_end(); }
  // Splits a step again with the current hot keys. May be called from any thread.
  void Split(PreparedStep* step) const;
  // Gives a step back, so that its memory is used again.
  void Recycle(std::unique_ptr<PreparedStep> step);

 private:
  struct Item {
    Status status;
    std::unique_ptr<PreparedStep> step;
  };

  StepPipeline(const Job& job, MonotonicClock& clock, const PipelineOptions& options,
               std::unique_ptr<BatchReader> reader);
  static Result<std::unique_ptr<PreparedStep>> Take(std::optional<Item> item);

  void PrepareAll();  // The thread of the keys.
  std::unique_ptr<PreparedStep> Prepare(ReadBatch read);
  void CountKeys(const PreparedStep& step);
  // Returns the keys of one of the step's lists, by table.
  std::vector<KeysOfTable> TablesOf(PreparedStep* step, size_t list) const;

  const Job& job_;
  MonotonicClock& clock_;
  const PipelineOptions options_;

  KeyFinder finder_;     // The thread of the keys only.
  BatchStream batches_;  // That thread takes them.
  BoundedQueue<Item> ready_;
  BoundedQueue<std::unique_ptr<PreparedStep>> used_;
  std::unique_ptr<Thread> preparing_;  // Last: it starts when all else is there.
};

}  // namespace hdps
