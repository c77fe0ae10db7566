// The checkpoints of one run: which to begin from, and when a new one counts.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/job/job_differences.h"
#include "common/platform/file_system.h"
#include "common/protocol/manifest.h"
#include "scheduler/plan/job_plan.h"
#include "scheduler/plan/resume.h"

namespace hdps {

struct Job;
struct Manifest;

// Invariant: latest() names a checkpoint that was whole when it was written or verified, or is
// empty. Nothing under `root` is changed but by Prepare(), Discard(), Commit() and
// RemoveUnfinished().
class CheckpointCatalog {
 public:
  // Checkpoints are the folders of `root`.
  CheckpointCatalog(FileSystem& files, std::string root, std::shared_ptr<const Job> job,
                    Resume resume);

  // The newest checkpoint of this job, every file of it read and compared; none when there is no
  // checkpoint at all. Under Resume::kChanged its job may have had other values of settings that
  // may change: then its place in the epoch is that of this job's steps. kInvalidArgument when
  // there is one of another job, with what differs; kCorruption when there are checkpoints and none
  // is whole.
  Result<std::optional<FoundCheckpoint>> FindStart();
  // The next older one, after a member found fault with `found`.
  Result<std::optional<FoundCheckpoint>> FindOlder(const FoundCheckpoint& found,
                                                   const std::string& fault);
  bool HasAny() const;

  // The clock of the checkpoint on which a delta may build: the latest. 0 when a full one is due,
  // since there is none, or because its deltas are many, or together half as long as it is.
  Clock DeltaBase() const;
  // Makes an empty folder for the checkpoint of `clock`; returns its path. One with what changed
  // after `since`, not 0, need not survive a crash of the machine.
  Result<std::string> Prepare(Clock clock, Clock since);
  // What a save that failed has left behind.
  void Discard(Clock clock);
  // What saves that never ended have left behind; while nobody saves. How many there were.
  Result<size_t> RemoveUnfinished() { return hdps::RemoveUnfinished(files_, root_); }
  // Every server has saved: `manifest`, which says what is the run's, not the job's, makes it a
  // checkpoint, and old ones go. Its files must be one of each shard; those that hold changes,
  // changes since DeltaBase().
  Status Commit(Manifest manifest);

  // The folder of the checkpoint of `clock`; empty where there is none.
  std::string FolderOf(Clock clock) const;
  const std::string& latest() const { return latest_; }
  // What latest() names: where a job goes back to. None before the first.
  const std::optional<FoundCheckpoint>& newest() const { return newest_; }
  const std::vector<std::string>& refused() const { return refused_; }
  // The settings that were changed on the way from checkpoints since the first step of the run.
  const std::vector<SettingChange>& changes() const { return changes_; }
  // For people: what was changed now, and what follows from it.
  std::vector<std::string> TakeNotices() { return std::exchange(notices_, {}); }

 private:
  // A part of latest(), as much as is needed to build on it.
  struct Link {
    Clock clock = 0;
    uint64_t checksum = 0, bytes = 0;
  };
  static Link LinkOf(const Manifest& manifest);
  Result<std::optional<FoundCheckpoint>> Find(Clock before);
  // The checkpoint is the newest: takes it for this job's, where it is or may become it.
  Status Adopt(FoundCheckpoint* found);
  Status RefuseOther(const FoundCheckpoint& found,
                     const std::vector<SettingDifference>& differences) const;
  void MovePosition(const Job& before, Manifest* manifest);

  FileSystem& files_;
  const std::string root_;
  const std::shared_ptr<const Job> job_;
  const Resume resume_;
  const uint64_t job_digest_, tables_digest_;
  std::string job_text_;  // As manifests hold it; empty before the first.
  std::string latest_;    // Folder of the newest whole one.
  std::optional<FoundCheckpoint> newest_;
  std::vector<Link> chain_;           // Its parts: a full one, then its deltas.
  std::vector<std::string> refused_;  // "FOLDER: reason" of those that were passed over.
  std::vector<SettingChange> changes_;
  std::vector<std::string> notices_;
};

// What to tell a person who goes on from a checkpoint with workers that compute with `now`: that
// the bits will not be those of one kind of CPU. Empty where they will, and where it does not say.
std::string OtherArithmetic(const Manifest& manifest, const std::set<std::string>& now);

}  // namespace hdps
