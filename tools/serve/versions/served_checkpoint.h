// A model from a folder of checkpoints, which follows the newer ones that come there.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/base/thread_annotations.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"
#include "common/platform/threads/pause.h"
#include "tools/scoring/checkpoint_model.h"
#include "tools/scoring/row_scorer.h"
#include "tools/serve/served_model.h"
#include "tools/serve/versions/request_sample.h"
#include "tools/serve/versions/stoppable_files.h"
#include "tools/serve/versions/tower_outputs.h"
#include "tools/serve/versions/version_facts.h"
#include "tools/serve/versions/version_source.h"

namespace hdps {

// Shared file systems send no notices, so the folder is looked at.
inline constexpr int64_t kLookEveryMs = 1000;

struct ServedOptions {
  std::string name;    // Empty: the job's.
  std::string folder;  // As OpenCheckpoint takes it.
  WantedVersion wanted = {};
  UnknownKeys unknown = UnknownKeys::kInitial;
  ItemsToRank items = {};  // For the output top_k of a two_tower model.
  // Not 0: rows are mapped files in a folder of `scratch` for each version, and the process gives
  // their memory back beyond about so many bytes.
  uint64_t memory_limit = 0;
  std::string scratch = {};
  int threads = 1;                 // At most so many requests are scored at once; others wait.
  int64_t look_ms = kLookEveryMs;  // 0: no thread looks, and a test calls Look().
  // Ends a load between two blocks once it is true, as the end of the model does; may be null.
  const std::atomic<bool>* stop = nullptr;
  // Tells people what happens to versions, a sentence a call; may be null.
  std::function<void(const std::string&)> tell = nullptr;
};

// Invariant: one version answers at any time, and one thread, the follower, replaces it. Whoever
// asks holds the version for the length of the call, and only the follower frees one. Everything of
// a newer version is read and checked before it answers.
class ServedCheckpoint : public ServedModel {
 public:
  // Loads the wanted version, or the next one that can be loaded. kNotFound says why there is none;
  // kCancelled if it was told to stop meanwhile.
  // Requires: `files` and `clock` outlive the result.
  static Result<std::unique_ptr<ServedCheckpoint>> Open(ServedOptions options, FileSystem& files,
                                                        MonotonicClock& clock);
  // A version that is being loaded is given up between two blocks of its files.
  ~ServedCheckpoint() override;

  bool ready() const override { return true; }
  Clock step() const override;
  std::vector<Clock> steps() const override HDPS_EXCLUDES(mutex_);
  const ModelNote& note() const override { return note_; }
  const std::vector<std::string>& features() const override { return features_; }
  Result<ScoreAnswer> Score(const ScoreRequest& request, Clock step) override;
  std::vector<Result<ScoreAnswer>> ScoreTogether(std::span<const ScoreRequest* const> requests,
                                                 Clock step) override;
  Result<LookupAnswer> Lookup(const LookupRequest& request, Clock step) override;
  Status Use(Clock step) override HDPS_EXCLUDES(mutex_);

  VersionFacts facts() const HDPS_EXCLUDES(mutex_);
  Job job() const { return Current()->job(); }  // Of the version that answers.

  // Looks at the folder once, and takes the wanted version if it is not at hand. For the follower,
  // or for a test in its place. What is refused is told once for each reason, and tried again when
  // the folder changes.
  void Look() HDPS_EXCLUDES(mutex_);

 private:
  // A version and, of a two_tower model, its further outputs.
  struct Version {
    std::shared_ptr<RowScorer> scorer;
    std::shared_ptr<TowerOutputs> towers;  // Goes before the scorer.
  };

  ServedCheckpoint(ServedOptions options, FileSystem& files, MonotonicClock& clock);
  Version CurrentVersion() const HDPS_EXCLUDES(mutex_);
  std::shared_ptr<RowScorer> Current() const { return CurrentVersion().scorer; }
  // Returns outputs of a two_tower model. kStaleView if a delta came in between.
  Result<ScoreAnswer> ScoreTowers(const ScoreRequest& request, std::span<const ScoreOutput> wanted,
                                  const Version& version);
  // Is true if the rows of both can be one batch.
  bool MayJoin(const ScoreRequest& a, const ScoreRequest& b) const;
  // Scores requests of which all may join the first as one batch.
  Result<std::vector<ScoreAnswer>> ScoreJoined(std::span<const ScoreRequest* const> requests,
                                               Clock step);
  // kNotFound unless `step` is kNoClock or that of the version.
  Status CheckAnswers(Clock step, const RowScorer& version) const HDPS_EXCLUDES(mutex_);

  void Follow();  // The follower's loop.
  // Tries the candidates in turn.
  void TakeFirstOf(const std::vector<Clock>& candidates);
  // Brings the model to the checkpoint of a clock, by deltas or beside.
  Status Take(Clock clock);
  Status ApplyDeltas(const std::vector<CheckpointPart>& deltas);
  Status ApplyDelta(const CheckpointPart& delta);
  Status LoadBeside(Clock clock, const VersionMark& mark);
  Result<std::shared_ptr<RowScorer>> Load(const FoundCheckpoint& found);
  // Describes the model by its first version. kInvalidArgument if a later one takes or gives
  // something else.
  Status SetOrCompareNote(const Version& version, bool first);
  void Tell(const std::string& what) const;
  void NoteTaken(VersionFacts::Refreshes VersionFacts::*kind, uint64_t bytes, int64_t began_ns)
      HDPS_EXCLUDES(mutex_);
  void NoteRefused(Clock clock, const Status& why) HDPS_EXCLUDES(mutex_);
  // Frees versions that nobody asks any more. Returns false if some are still asked.
  bool FreeRetired();

  const ServedOptions options_;
  StoppableFiles files_;
  MonotonicClock& clock_;
  const std::unique_ptr<Executor> executor_;
  ModelNote note_;                     // Set by the first load.
  std::vector<std::string> features_;  // The same.
  RequestSample sample_;

  // ---- The follower's.
  VersionSource source_;
  VersionMark at_hand_;
  std::vector<Version> retired_;
  std::set<std::pair<Clock, std::string>> refused_;  // What was told, as long as source_ knows it.

  mutable Mutex mutex_;
  Version current_ HDPS_GUARDED_BY(mutex_);
  std::vector<Clock> steps_ HDPS_GUARDED_BY(mutex_);
  WantedVersion wanted_ HDPS_GUARDED_BY(mutex_);
  bool again_ HDPS_GUARDED_BY(mutex_) = false;  // The next look tries, whatever it finds.
  VersionFacts facts_ HDPS_GUARDED_BY(mutex_);

  Pause pause_;
  std::unique_ptr<Thread> follower_;
};

}  // namespace hdps
