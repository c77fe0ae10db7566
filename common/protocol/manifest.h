// The manifest of a checkpoint. It is written last and names every file with its checksum and, for
// a delta, the checkpoint that it builds on.
#pragma once

#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/platform/file_system.h"
#include "common/protocol/manifest_parts.h"
#include "common/protocol/watch_state.h"

namespace hdps {

inline constexpr Clock kNoClock = -1;

// The number of examples that the workers of a job have trained on, and the sum of their losses.
struct TrainedSums {
  uint64_t examples = 0;
  double loss_sum = 0;
};

// A setting that the operator changed when the job was resumed from a checkpoint
// (--resume=changed).
struct SettingChange {
  Clock clock = 0;  // Clock of that checkpoint; later steps use the new value.
  std::string setting, from, to;
  friend bool operator==(const SettingChange&, const SettingChange&) = default;
};

// A step at which all workers stood, and how long the job had trained then.
struct StepTime {
  Clock clock = 0;
  int64_t trained_ms = 0;
  friend bool operator==(const StepTime&, const StepTime&) = default;
};
inline constexpr size_t kStepTimesMax = 1024;

// The contents of manifest.json. The folder checkpoint/step_0000000120/ holds it with the snapshots
// of clock 120.
//
// A full checkpoint holds every row. A delta holds what changed since the checkpoint before it,
// full or delta, which lies beside it and which it names by clock and by the checksum of its
// manifest. It may hold every row of some shards.
struct Manifest {
  std::string job_name;
  uint64_t job_digest = 0;
  uint64_t tables_digest = 0;
  uint32_t num_shards = 0;
  Clock clock = 0;
  uint32_t epoch = 0;  // The epoch that contains `clock`, and the clock of its begin.
  Clock epoch_start = 0;
  uint64_t examples = 0;  // Trained on so far, by all workers.
  // Sums of that epoch and of the one before it, and the number of data rows that were refused.
  // Zero in checkpoints of older versions.
  TrainedSums epoch_sums, last_epoch_sums;
  uint64_t bad_rows = 0;
  uint64_t unknown_ids = 0;  // Ids without a row so far; zero in older versions.
  // Rows admitted, refused and evicted so far; zero in older versions. The other counts are not
  // kept.
  RowCounts row_counts;
  std::vector<SettingChange> changes;  // Since the first step, in order.
  // State of the evaluations so far; the initial one in older versions.
  Watched watched;
  // Everything beside the job on which the bits of the results depend, for each worker since the
  // last start, without duplicates (CommandDone::arithmetic). Empty in older versions.
  std::vector<std::string> arithmetic;
  // The files of data.train as that epoch reads them. Empty in older versions.
  std::vector<FilePrint> data_files;
  // How long the job has trained, and steps by which servers learn how old rows are; only where
  // rows are evicted by seconds.
  int64_t trained_ms = 0;
  std::vector<StepTime> step_times;
  // These offsets say what of a topic was trained at `clock`, by partition; empty without a topic.
  std::vector<PartitionOffset> offsets;
  Clock steps_before = 0;        // Steps of the jobs that this one began from (--init).
  std::string job_json;          // PrintJob() of the job that wrote it.
  std::vector<SavedFile> files;  // One per shard, by name; several may lie in one pack.
  Clock base_clock = kNoClock;   // For a delta: clock of the checkpoint it builds on.
  uint64_t base_checksum = 0;

  bool is_delta() const { return base_clock != kNoClock; }
};
// Returns the checksum in the file, over everything else in it.
uint64_t ManifestChecksum(const Manifest& manifest);

// Ending of the files that hold only the changes of a shard.
inline constexpr const char* kDeltaEnding = ".delta";
inline bool HoldsChanges(const SavedFile& file) { return file.name.ends_with(kDeltaEnding); }

inline constexpr const char* kManifestName = "manifest.json";

std::string CheckpointName(Clock clock);  // "step_0000000120"

// Writes manifest.json into `folder` atomically; after that the checkpoint exists. A full
// checkpoint then survives a crash of the machine, as do its files. The reader finds out if a delta
// did.
Status WriteManifest(FileSystem& files, const std::string& folder, const Manifest& manifest);
// Errors: kNotFound if there is no manifest; kCorruption if its checksum, a field or a range is
// wrong.
Result<Manifest> ReadManifest(FileSystem& files, const std::string& folder);

// One part of a checkpoint. A checkpoint consists of a full one and a chain of deltas, each built
// on the one before; a full checkpoint has one part.
struct CheckpointPart {
  std::string folder;
  Manifest manifest;
};
// Returns the parts of the checkpoint in `folder`, which is the last of them. Checks every manifest
// and that each names the one before it; reads no other file. Errors are those of ReadManifest,
// with the name of the part.
Result<std::vector<CheckpointPart>> ReadChain(FileSystem& files, const std::string& folder);

// A complete checkpoint under `root`: all files of all its parts exist with the right length and
// checksum.
struct FoundCheckpoint {
  std::string folder;
  Manifest manifest;
  // Newer checkpoints that failed verification: "FOLDER: reason" each.
  std::vector<std::string> refused;
  std::vector<CheckpointPart> chain = {};
  // Clock of the newest checkpoint, if this one was chosen because it is the best.
  Clock newest = kNoClock;
};
// Returns the newest checkpoint with a clock below `before` that verifies. Errors: kNotFound if
// `root` has none; the message lists those that failed.
Result<FoundCheckpoint> FindCheckpoint(FileSystem& files, const std::string& root,
                                       Clock before = std::numeric_limits<Clock>::max());
// Opens a checkpoint as an operator names it: its own folder (verified; kCorruption if it is
// broken), a folder of checkpoints, or the --out of a run (the newest that verifies). Errors:
// kNotFound says what was searched.
Result<FoundCheckpoint> OpenCheckpoint(FileSystem& files, const std::string& path);

// Opens the bytes of `saved`: its own file, or its range of a pack. Reading ends at the end of the
// file or range. Error messages begin with PlaceOf().
Result<std::unique_ptr<SequentialFile>> OpenSaved(FileSystem& files, const std::string& folder,
                                                  const SavedFile& saved);
std::string PlaceOf(const std::string& folder, const SavedFile& saved);
// Reads every file of this part, not of the other parts, and compares lengths and checksums. Each
// byte of a pack must belong to one of its files. Errors: kCorruption names the file.
Status VerifyCheckpoint(FileSystem& files, const std::string& folder, const Manifest& manifest);
// Returns length and HashBytes() of the whole file, read as a stream, as SavedFile holds them.
Result<SavedFile> ChecksumFile(FileSystem& files, const std::string& folder,
                               const std::string& name);
// Chooses among the checkpoints of a run: kNewest is the newest that verifies. kBest is the one
// with the best evaluation, as recorded in the newest, if it exists and verifies; otherwise the
// newest.
enum class WhichCheckpoint : uint8_t { kBest, kNewest };
// The same with that choice among a folder of checkpoints or the --out of a run. A checkpoint's own
// folder is opened as it is.
Result<FoundCheckpoint> OpenCheckpoint(FileSystem& files, const std::string& path,
                                       WhichCheckpoint which);

// Removes old checkpoints. It keeps the newest `keep` full ones (at least one), the deltas since
// the oldest of those, the checkpoints of clock `best` and of `held`, and everything that these
// build on. Incomplete checkpoints older than the newest kept one are removed too.
Status PruneCheckpoints(FileSystem& files, const std::string& root, uint32_t keep,
                        Clock best = kNoClock, const std::set<Clock>& held = {});

// Removes checkpoint folders without a manifest, which unfinished saves have left behind. Call it
// while nobody is saving. Returns their number.
Result<size_t> RemoveUnfinished(FileSystem& files, const std::string& root);

}  // namespace hdps
