// Copies the state of the job into pictures.
#include "scheduler/picture/job_watch.h"

#include <algorithm>
#include <numeric>

#include "common/job/job_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/job/tables/figure_tables.h"
#include "common/platform/file_system.h"
#include "scheduler/members/membership.h"
#include "scheduler/members/rendezvous.h"
#include "scheduler/picture/panels.h"
#include "scheduler/plan/checkpoint_catalog.h"
#include "scheduler/why/wait_graph.h"

namespace hdps {
namespace {

// The status of before is about this old, as that of `hdps why` is.
constexpr TimeMs kApartMs = 1000;

std::shared_ptr<const PictureFrame> FrameOf(const SchedulerOptions& options,
                                            uint64_t first_version) {
  const Job& job = *options.job;
  const std::vector<std::string> tables = FigureTables(job);
  return std::make_shared<const PictureFrame>(
      PictureFrame{.job = job.name,
                   .out = options.out,
                   .resume_command = options.resume_command,
                   .epochs = job.train.epochs,
                   .max_steps = static_cast<Clock>(job.train.max_steps),
                   .tables = tables,
                   .settings = options.settings,
                   .workers = FigureLayout(FigureRole::kWorker, tables.size()),
                   .servers = FigureLayout(FigureRole::kServer, tables.size()),
                   .heartbeat_ms = job.cluster.heartbeat_ms,
                   .first_version = first_version});
}

MemberCounts CountsOf(const Rendezvous& rendezvous, Role role) {
  return {.alive = rendezvous.Count(role), .silent = 0, .expected = rendezvous.Places(role)};
}

}  // namespace

JobWatch::JobWatch(const SchedulerOptions& options, FileSystem& files)
    : options_(options),
      files_(files),
      frame_(FrameOf(options,
                     static_cast<uint64_t>(options.unix_ms_at_zero + options.started_at) + 1)),
      meters_(FigureLayout(FigureRole::kScheduler, 0)),
      now_(options.started_at) {}

void JobWatch::TakeFormerLines() {
  history_.TakeFile(files_, JoinPath(options_.out, "metrics.jsonl"), NextVersion());
}

double JobWatch::UnixTime(TimeMs now) const {
  return static_cast<double>(options_.unix_ms_at_zero + now) / 1000;
}

// Versions are milliseconds since 1970, so that those of a later process are larger.
uint64_t JobWatch::NextVersion() const {
  const uint64_t least = picture_ == nullptr ? frame_->first_version : picture_->version + 1;
  return std::max(least, static_cast<uint64_t>(options_.unix_ms_at_zero + now_));
}

void JobWatch::TakeLine(const std::string& line) {
  history_.TakeLine(line, NextVersion(), UnixTime(now_));
}

void JobWatch::TakeNotice(const std::string& line, bool warning) {
  if (line.find('\n') != line.npos) return;  // The summary's table.
  history_.TakeEvent({.version = NextVersion(),
                      .time = UnixTime(now_),
                      .step = picture_ == nullptr ? 0 : picture_->progress.clock,
                      .warning = warning,
                      .text = line});
}

void JobWatch::LookAt(const CheckpointCatalog& checkpoints, TimeMs now) {
  const std::optional<Clock> preparing = checkpoints.preparing();
  if (preparing && (!saving_ || saving_->first != *preparing)) saving_ = {*preparing, now};
  const std::optional<FoundCheckpoint>& newest = checkpoints.newest();
  if (!newest || newest->manifest.clock == newest_checkpoint_) return;
  const Manifest& manifest = newest->manifest;
  // One that is there before this process saved any was found, and so read back.
  const bool written = saving_ && saving_->first == manifest.clock;
  KnownCheckpoint known{.version = NextVersion(),
                        .step = manifest.clock,
                        .full = !manifest.is_delta(),
                        .verified = !written,
                        .path = newest->folder};
  for (const SavedFile& file : manifest.files) known.bytes += file.bytes;
  if (written) {
    known.time = UnixTime(now);
    known.seconds = static_cast<double>(now - saving_->second) / 1000;
    saving_.reset();
  }
  newest_checkpoint_ = manifest.clock;
  history_.TakeCheckpoint(std::move(known));
}

void JobWatch::TakeMembers(const WatchedJob& job, JobPicture* picture) {
  picture->workers = CountsOf(job.rendezvous, Role::kWorker);
  picture->servers = CountsOf(job.rendezvous, Role::kServer);
  if (job.members == nullptr) return;
  const View& view = job.members->view();
  std::map<PeerId, uint32_t> ranks;
  for (const Member& member : view.Holders()) ranks[member.peer] = member.rank;
  for (const Member& member : view.workers) ranks[member.peer] = member.rank;
  const std::vector<PeerId> peers = job.members->all();
  for (size_t m = 0; m < peers.size(); ++m) {
    const MemberStatus& status = picture->status->members[m];
    MemberPicture& member = picture->members.emplace_back();
    member.name = status.name;
    member.process = job.members->ProcessOf(peers[m]).host;
    member.worker = job.members->WorkerRank(peers[m]).has_value();
    member.rank = ranks[peers[m]];
    member.readings = job.members->readings(peers[m]);
    const bool silent = status.deaf || status.silent_ms > LateMs(*picture->status);
    if (!job.rendezvous.Has(peers[m])) {
      member.state = "missing";
    } else if (silent && !picture->ended) {
      member.state = status.deaf ? "deaf" : "silent";
      MemberCounts& counts = member.worker ? picture->workers : picture->servers;
      counts.silent += 1;
      counts.alive -= std::min(counts.alive, 1u);
    }
    const FigureLayout& layout = member.worker ? frame_->workers : frame_->servers;
    paces_.try_emplace({member.worker, member.rank}, layout)
        .first->second.Take(picture->made_at, member.readings);
  }
}

void JobWatch::JudgePaces(JobPicture* picture) {
  for (const bool worker : {false, true}) {
    std::vector<double> seconds;
    for (const MemberPicture& member : picture->members) {
      if (member.worker == worker) {
        seconds.push_back(paces_.at({worker, member.rank}).OwnSeconds());
      }
    }
    const double median = LowerMedian(std::move(seconds));
    for (MemberPicture& member : picture->members) {
      if (member.worker != worker) continue;
      MemberPace& pace = paces_.at({worker, member.rank});
      pace.Judge(median);
      member.stage_seconds = pace.StageSeconds();
      member.ratio = pace.ratio();
      member.slow_count = pace.slow_count();
      member.straggler = pace.is_straggler();
    }
  }
}

void JobWatch::Make(TimeMs now, const WatchedJob& job) {
  auto picture = std::make_shared<JobPicture>();
  picture->version = NextVersion();
  picture->made_at = now;
  picture->time = UnixTime(now);
  picture->frame = frame_;
  if (history_.TakeChanged()) told_history_ = std::make_shared<const RunHistory>(history_);
  picture->history = told_history_;
  picture->status = std::make_shared<const StatusReply>(job.status);
  statuses_.emplace_back(now, picture->status);
  while (statuses_.size() > 1 && now - statuses_[1].first >= kApartMs) statuses_.pop_front();
  const TimeMs apart = now - statuses_.front().first;
  if (apart >= kApartMs && apart <= 3 * kApartMs) {
    picture->before = statuses_.front().second;
    picture->apart_ms = apart;
  }
  picture->ended = job.ended;
  picture->failed = job.failed;
  picture->progress = job.progress;
  picture->examples = job.examples;
  picture->progress_line = job.progress_line;
  picture->arithmetic = job.arithmetic;
  TakeMembers(job, picture.get());
  JudgePaces(picture.get());
  picture->own = OwnSamples(*picture, job);
  picture_ = std::move(picture);
  if (options_.pictures != nullptr) options_.pictures->Put(picture_);
}

std::string JobWatch::OnTick(TimeMs now, const std::function<WatchedJob()>& job) {
  now_ = now;
  const bool watched = options_.pictures != nullptr || (asked_at_ && now - *asked_at_ <= kAskedMs);
  if (!written_at_) written_at_ = now;
  const bool file_due = now - *written_at_ >= kFileEveryMs;
  const bool due = picture_ == nullptr || now - picture_->made_at >= kEveryMs;
  if ((watched && due) || file_due) Make(now, job());
  if (!file_due) return "";
  written_at_ = now;
  return WriteFile();
}

std::string JobWatch::Finish(TimeMs now, const WatchedJob& job) {
  now_ = now;
  Make(now, job);
  return WriteFile();
}

std::shared_ptr<const JobPicture> JobWatch::Ask(TimeMs now,
                                                const std::function<WatchedJob()>& job) {
  asked_at_ = now_ = now;
  if (picture_ == nullptr || now - picture_->made_at >= kEveryMs) Make(now, job());
  return picture_;
}

std::string JobWatch::WriteFile() {
  const Status written = WriteFileAtomically(files_, JoinPath(options_.out, "figures.json"),
                                             WholeJson(*picture_) + "\n", Survives::kProcess);
  const bool news = !written.ok() && !write_fails_;
  write_fails_ = !written.ok();
  if (!news) return "";
  return "figures.json is not written while this lasts: " + written.message();
}

}  // namespace hdps
