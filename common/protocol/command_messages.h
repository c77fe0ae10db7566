// Commands of the scheduler to its members, and their answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/buffer.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/protocol/manifest_parts.h"
#include "common/protocol/message_kind.h"
#include "common/protocol/tallies.h"

namespace hdps {

enum class CommandKind : uint8_t {
  // Worker 0 of a new job: store the initial dense rows on the servers, but those of `taken`.
  kInitDense = 0,
  kLoad,   // Servers: load the checkpoint in `path`. Workers: continue at clock `until`.
  kTrain,  // Workers: train `epoch` until clock `until` or the epoch's end, then answer.
  kPause,  // Workers: finish the current step. The running kTrain is answered at that clock.
  // Worker 0 under allreduce, or all workers that share the optimizer state: store dense rows with
  // their state on the servers.
  kStoreDense,
  kEvaluate,    // Workers: score their part of the evaluation data; answer with sections.
  kSave,        // Servers: write snapshots of all own shards into `path`.
  kDigest,      // Servers: compute a digest of all own rows.
  kFinish,      // All: answer, then end with status 0.
  kAwaitSaved,  // Servers: answer once the save that kSave took at clock `until` is in files.
  // All holders of rows: evict those that no step after `last_steps` has updated, between step
  // `until` and the next.
  kEvict,
};

// Returns the name of a command for reasons and logs: "init_dense", "train", ...
const char* CommandKindName(CommandKind kind);

// Repeated under the same id until answered; executed once.
struct Command {
  static constexpr MessageKind kKind = MessageKind::kCommand;
  CommandId id;
  CommandKind command = CommandKind::kFinish;
  Clock until = 0;        // kTrain, kLoad, kSave (the clock of the checkpoint)
  uint32_t epoch = 0;     // kTrain, kLoad
  Clock epoch_start = 0;  // kTrain, kLoad: clock at which that epoch began.
  std::string path;  // kLoad, kSave: folder of the checkpoint. kLoad: empty to start from nothing.
  // kSave: the shards to save, or all of the server's if empty. kLoad with `keep`: the shards that
  // the server receives.
  std::vector<ShardId> shards;
  // kLoad: keep the rows that the server has, which are of clock `until`, and add `files`.
  bool keep = false;
  std::vector<SavedFile> files;
  // kTrain: the step at which the worker begins.
  // kSave: if not 0, save only what changed since the checkpoint of this clock, for shards that
  // know it.
  Clock since = 0;
  // kSave: answer once the rows are copied; they are written while requests change the originals.
  bool take = false;
  bool next = false;  // kEvaluate: score the examples after those of the last answer.
  double rate = 1;    // kTrain: factor on all learning rates.
  // kLoad: `path` is the checkpoint of another job, of which servers take what MatchInit() pairs.
  bool init = false;
  std::vector<uint32_t> taken;    // kInitDense: tensors that servers have so, which are left alone.
  std::vector<Clock> last_steps;  // kEvict: [tables]; 0: none of the table.
  // kTrain: where the partitions of a topic are at the begin of the round; empty: data.kafka.start
  // tells, or the job reads no topic.
  std::vector<PartitionOffset> offsets;
  // kTrain: steps of the jobs that this one began from, which count for bias corrections.
  Clock steps_before = 0;
  std::string eval_set;  // kEvaluate: name of a set in EvalSetsOf(); empty for the first.
  uint64_t reign = 0;    // As View::reign.
  // kTrain: a process that was lost had begun this order in this place, at step `since`. The worker
  // asks the servers where the place stands, and goes on from there.
  bool begun = false;
  ViewId view;  // View of the frame it came in; not part of the message.
};

// A figure of an evaluation that a worker's own program measured, {"auc", 0.8}: its name is one by
// IsFigureName(), and its value is finite.
struct NamedFigure {
  std::string name;
  double value = 0;
  friend bool operator==(const NamedFigure&, const NamedFigure&) = default;
};
inline constexpr size_t kFiguresMax = 64;  // In one evaluation.

// The answer to a command. Its kind determines which fields are set.
struct CommandDone {
  static constexpr MessageKind kKind = MessageKind::kCommandDone;
  CommandId id;
  Code code = Code::kOk;
  std::string message;
  Clock clock = 0;                   // kTrain, kPause: finished steps; kLoad: until the load.
  bool end_of_epoch = false;         // kTrain: the data of the epoch ended at this clock.
  uint64_t examples = 0;             // kTrain: since this command began; kEvaluate: scored.
  double loss_sum = 0;               // kTrain, kEvaluate
  uint64_t bad_rows = 0;             // kTrain: rows of the data that were refused and skipped.
  CacheTally cache = {};             // kTrain
  CollectiveTally collectives = {};  // kTrain
  LabelTally label_tally = {};       // kTrain: since this command began; kEvaluate.
  uint64_t digest[2] = {};       // kDigest: sums, so that the digests of all servers can be added.
  uint64_t rows = 0;             // kDigest, kSave; kInitDense, kLoad of worker 0: rows in an epoch.
  uint64_t row_bytes = 0;        // kDigest: memory of rows and state.
  RowCounts counts;              // kDigest
  uint64_t process_bytes = 0;    // kDigest: peak memory of the process; 0 if unknown.
  std::vector<SavedFile> files;  // kSave, kAwaitSaved
  bool taken = false;            // kSave: the files do not exist yet; kAwaitSaved reports them.
  // kEvaluate: the scored examples, n of them; see ScoredExamples in
  // common/metrics/scored_examples.h.
  Buffer scores;          // float32 [n, tasks]
  Buffer labels;          // float32 [n, tasks]
  Buffer weights;         // float32 [n], or empty if all are 1.
  Buffer groups;          // uint64 [n], or empty.
  bool more = false;      // kEvaluate: there are more examples; ask with Command::next.
  double weight_sum = 0;  // kEvaluate: sum of the weights of the examples.
  // kTrain, kLoad, worker 0: the files of data.train as they are read, at most kFilePrintsMax.
  std::vector<FilePrint> data_files;
  std::string data_changes;  // kTrain, kEvaluate: changes of the data files, for people.
  // Workers: parameters in the model's dense layers, the rows that hold them on the servers, and
  // what the bits of results depend on ("avx2 vectors, oneDNN at AVX2").
  uint64_t dense_parameters = 0, dense_rows = 0;
  std::string arithmetic;
  std::vector<NamedFigure> figures;  // kEvaluate: what the worker's own program measured.
  // kTrain: where the worker's partitions of a topic are behind its last step.
  std::vector<PartitionOffset> offsets;
  // kTrain: steps and examples that a lost process had pushed to some of the servers, and that were
  // trained again.
  uint64_t steps_again = 0, examples_again = 0;
};

}  // namespace hdps
