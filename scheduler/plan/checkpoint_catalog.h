// The checkpoints of one run: where to resume, and when a new one is complete.
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
// empty. Only Prepare(), Discard(), Commit(), Hold() and RemoveUnfinished() change anything under
// `root`.
class CheckpointCatalog {
 public:
  // Checkpoints are the folders of `root`.
  CheckpointCatalog(FileSystem& files, std::string root, std::shared_ptr<const Job> job,
                    Resume resume);

  // Returns the newest whole checkpoint of this job, after reading and comparing every file of it;
  // none if there is no checkpoint at all. Under Resume::kChanged its job may differ in settings
  // that may change; its position in the epoch is then converted to this job's steps.
  // kInvalidArgument if there is one of another job, with the differences; kCorruption if there are
  // checkpoints and none is whole.
  Result<std::optional<FoundCheckpoint>> FindStart();
  // Returns the next older one, after a member found a fault in `found`.
  Result<std::optional<FoundCheckpoint>> FindOlder(const FoundCheckpoint& found,
                                                   const std::string& fault);
  bool HasAny() const;

  // Returns the clock of the latest checkpoint, on which a delta may build. Returns 0 if a full one
  // is due: there is none yet, it has many deltas, or they are together half as long as it is.
  Clock DeltaBase() const;
  // Makes an empty folder for the checkpoint of `clock`; returns its path. A delta (`since` not 0)
  // need not survive a crash of the machine.
  Result<std::string> Prepare(Clock clock, Clock since);
  // Returns the clock of the checkpoint that is being written: prepared, and neither committed nor
  // discarded yet.
  const std::optional<Clock>& preparing() const { return preparing_; }
  // Removes what a failed save has left.
  void Discard(Clock clock);
  // Removes what unfinished saves have left, while no save runs. Returns their number.
  Result<size_t> RemoveUnfinished() { return hdps::RemoveUnfinished(files_, root_); }
  // Makes a save of all servers a checkpoint, and removes old ones. `manifest` holds the data of
  // the run; those of the job are filled in here. There must be one file for each shard; deltas
  // must build on DeltaBase().
  Status Commit(Manifest manifest);

  // Returns how many checkpoints this process has made.
  uint64_t saves() const { return saves_; }
  // Keeps these checkpoints although newer ones make them old; those that it kept before and that
  // are old now are removed.
  void Hold(const std::set<Clock>& held);

  // Returns the folder of the checkpoint of `clock`; empty if there is none.
  std::string FolderOf(Clock clock) const;
  const std::string& latest() const { return latest_; }
  // The checkpoint in latest(), to which a job goes back; none before the first.
  const std::optional<FoundCheckpoint>& newest() const { return newest_; }
  const std::vector<std::string>& refused() const { return refused_; }
  // The settings that were changed at checkpoints since the first step of the run.
  const std::vector<SettingChange>& changes() const { return changes_; }
  // Returns notices about settings that were changed now, and the consequences.
  std::vector<std::string> TakeNotices() { return std::exchange(notices_, {}); }

 private:
  // A part of latest(), reduced to what is needed to build on it.
  struct Link {
    Clock clock = 0;
    uint64_t checksum = 0, bytes = 0;
  };
  static Link LinkOf(const Manifest& manifest);
  Result<std::optional<FoundCheckpoint>> Find(Clock before);
  // Accepts the newest checkpoint if it is this job's or may become it.
  Status Adopt(FoundCheckpoint* found);
  Status RefuseOther(const FoundCheckpoint& found,
                     const std::vector<SettingDifference>& differences) const;
  // Puts a copy of the job's vocabulary, if it has one, into the folder of a full checkpoint.
  Status CopyVocabulary(const std::string& folder) const;
  void MovePosition(const Job& before, Manifest* manifest);
  // Removes old checkpoints. A failure leaves the others as whole as they are, and is logged.
  void RemoveOld() const;

  FileSystem& files_;
  const std::string root_;
  const std::shared_ptr<const Job> job_;
  const Resume resume_;
  const uint64_t job_digest_, tables_digest_;
  std::string job_text_;  // As manifests hold it; empty before the first.
  std::optional<Clock> preparing_;
  uint64_t saves_ = 0;
  std::set<Clock> held_;
  std::string latest_;  // Folder of the newest whole checkpoint.
  std::optional<FoundCheckpoint> newest_;
  std::vector<Link> chain_;           // Parts of it: a full one, then its deltas.
  std::vector<std::string> refused_;  // "FOLDER: reason" for those passed over.
  std::vector<SettingChange> changes_;
  std::vector<std::string> notices_;
};

// Returns a warning that bits will differ, if workers that compute with `now` resume from a
// checkpoint of another kind of CPU. Empty if not, or if the manifest does not tell.
std::string OtherArithmetic(const Manifest& manifest, const std::set<std::string>& now);

}  // namespace hdps
