// The scheduler's own figures.
#include <cmath>
#include <limits>
#include <string>

#include "common/telemetry/process_meters.h"
#include "scheduler/picture/job_watch.h"

namespace hdps {
namespace {

void AddMembers(const char* role, const MemberCounts& counts, std::vector<Sample>* samples) {
  const uint32_t here = counts.alive + counts.silent;
  const std::pair<const char*, uint32_t> states[] = {
      {"alive", counts.alive},
      {"silent", counts.silent},
      {"missing", counts.expected > here ? counts.expected - here : 0}};
  for (const auto& [state, count] : states) {
    samples->push_back({.figure = FigureNamed("hdps_members"),
                        .labels = {{"role", role}, {"state", state}},
                        .value = static_cast<double>(count)});
  }
}

}  // namespace

std::vector<Sample> JobWatch::OwnSamples(const JobPicture& picture, const WatchedJob& job) {
  constexpr TimeMs kProcessEveryMs = 1000;
  if (!process_read_at_ || picture.made_at - *process_read_at_ >= kProcessEveryMs) {
    process_read_at_ = picture.made_at;
    SetProcess(ReadProcessUsage(files_), &meters_);
  }
  const ProgressState& progress = picture.progress;
  const auto set = [this](FigureId figure, double value) { meters_.Set(figure, value); };
  set(FigureNamed("hdps_step"), static_cast<double>(progress.clock));
  set(FigureNamed("hdps_epoch"), EpochOf(progress, frame_->epochs));
  set(FigureNamed("hdps_examples_per_second"), history_.examples_per_second());
  set(FigureNamed("hdps_training_loss"), history_.loss());
  set(FigureNamed("hdps_learning_rate"), history_.learning_rate());
  // After a way back to a checkpoint the job counts again, which a counter must not show.
  if (progress.examples > examples_seen_) {
    meters_.Add(FigureNamed("hdps_examples_total"), progress.examples - examples_seen_);
  }
  examples_seen_ = progress.examples;
  meters_.SetTotal(FigureNamed("hdps_losses_survived_total"), job.losses);
  meters_.SetTotal(FigureNamed("hdps_shards_moved_total"), job.shards_moved);
  set(FigureNamed("hdps_server_busy_over_mean"), job.status.busiest_over_mean);
  const auto& checkpoints = history_.checkpoints();
  if (!checkpoints.empty()) {
    const KnownCheckpoint& newest = checkpoints.back();
    set(FigureNamed("hdps_checkpoint_step"), static_cast<double>(newest.step));
    set(FigureNamed("hdps_checkpoint_time_seconds"), newest.time.value_or(0));
    const auto& before = checkpoints.size() > 1 ? checkpoints.end()[-2].time : newest.time;
    const bool known = newest.time && before;
    set(FigureNamed("hdps_checkpoint_interval_seconds"), known ? *newest.time - *before : 0);
  }
  if (job.copies.step) set(FigureNamed("hdps_copy_step"), static_cast<double>(*job.copies.step));
  set(FigureNamed("hdps_copy_seconds"), job.copies.seconds);
  meters_.SetTotal(FigureNamed("hdps_copy_failures_total"), job.copies.failures);
  std::vector<Sample> samples = SamplesOf(meters_.layout(), meters_.Read(), {});
  AddMembers("server", picture.servers, &samples);
  AddMembers("worker", picture.workers, &samples);
  for (const HotShard& shard : job.status.hot_shards) {
    samples.push_back({.figure = FigureNamed("hdps_shard_busy_ratio"),
                       .labels = {{"shard", std::to_string(shard.shard.value)},
                                  {"server", std::to_string(shard.server.value)}},
                       .value = shard.busy});
  }
  for (const EvaluatedFigure& figure : history_.evaluations()) {
    samples.push_back({.figure = FigureNamed("hdps_evaluation"),
                       .labels = {{"set", figure.set}, {"metric", figure.metric}},
                       .value = figure.value});
  }
  return samples;
}

}  // namespace hdps
