// Makes pictures of the running job for those who look at it.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/net/node.h"
#include "common/protocol/status_messages.h"
#include "common/telemetry/meters.h"
#include "common/telemetry/published.h"
#include "scheduler/picture/job_picture.h"
#include "scheduler/picture/member_pace.h"
#include "scheduler/plan/checkpoint_copies.h"
#include "scheduler/scheduler_options.h"

namespace hdps {

class CheckpointCatalog;
class FileSystem;
class Membership;
class Rendezvous;

// The parts of the scheduler that a picture is made of.
struct WatchedJob {
  const Membership* members = nullptr;  // Null before the first view.
  const Rendezvous& rendezvous;
  StatusReply status = {};
  ProgressState progress = {};
  uint64_t examples = 0;      // Of the job, those before this process included.
  uint64_t shards_moved = 0;  // As Balancer counts them.
  uint32_t losses = 0;        // Members that were lost while the job went on.
  std::string progress_line = {};
  CheckpointCopies::Figures copies = {};
  std::vector<std::string> arithmetic = {};
  std::optional<std::string> ended = {};
  bool failed = false;
};

// Owned by one SchedulerNode and used on its thread; readers on other threads get the pictures
// through SchedulerOptions::pictures.
//
// Invariant: a picture is made at most every kEveryMs, and only while somebody looks: pictures are
// published, or a panel was asked for in the last kAskedMs. Besides, one is made at the start and
// every kFileEveryMs for OUT/figures.json, so that a run that dies leaves one.
class JobWatch {
 public:
  static constexpr TimeMs kEveryMs = 100, kAskedMs = 10'000, kFileEveryMs = 30'000;

  // Requires: `options` and `files` outlive it.
  JobWatch(const SchedulerOptions& options, FileSystem& files);

  // Reads the curves of a run that goes on from its metrics.jsonl.
  void TakeFormerLines();
  // Take what happens between two pictures.
  void TakeLine(const std::string& line);  // Of metrics.jsonl.
  void TakeNotice(const std::string& line, bool warning);
  void LookAt(const CheckpointCatalog& checkpoints, TimeMs now);

  // Makes a picture if one is due. Returns the error of writing OUT/figures.json, if it is a new
  // one; otherwise an empty text.
  std::string OnTick(TimeMs now, const std::function<WatchedJob()>& job);
  // Makes the last picture and writes it; the error or an empty text.
  std::string Finish(TimeMs now, const WatchedJob& job);
  // Returns the picture of now, for a caller that asks for a panel.
  std::shared_ptr<const JobPicture> Ask(TimeMs now, const std::function<WatchedJob()>& job);

 private:
  double UnixTime(TimeMs now) const;
  uint64_t NextVersion() const;
  void Make(TimeMs now, const WatchedJob& job);
  void TakeMembers(const WatchedJob& job, JobPicture* picture);
  void JudgePaces(JobPicture* picture);
  std::vector<Sample> OwnSamples(const JobPicture& picture, const WatchedJob& job);
  std::string WriteFile();

  const SchedulerOptions& options_;
  FileSystem& files_;
  const std::shared_ptr<const PictureFrame> frame_;
  std::optional<TimeMs> asked_at_, written_at_;
  RunHistory history_;
  std::shared_ptr<const RunHistory> told_history_;
  std::shared_ptr<const JobPicture> picture_;
  // Statuses of the last second, in order of time.
  std::deque<std::pair<TimeMs, std::shared_ptr<const StatusReply>>> statuses_;
  std::map<std::pair<bool, uint32_t>, MemberPace> paces_;  // By role (is it a worker) and rank.
  Meters meters_;                                          // Of the scheduler.
  TimeMs now_ = 0;
  uint64_t examples_seen_ = 0;
  std::optional<TimeMs> process_read_at_;
  // The checkpoint that is being written, since when, and the newest one that is known.
  std::optional<std::pair<Clock, TimeMs>> saving_;
  std::optional<Clock> newest_checkpoint_;
  bool write_fails_ = false;
};

}  // namespace hdps
