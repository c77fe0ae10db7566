// Fills the window, runs its first step, reports it, and repeats.
#include "worker/role/training_round.h"

#include "common/protocol/membership_messages.h"
#include "common/protocol/view.h"
#include "worker/step/label_count.h"
#include "worker/step/step_meters.h"

namespace hdps {

Status TrainingRound::AwaitRows(std::optional<Command>* pause, bool may_pause) {
  StepWindow& window = steps_.window();
  while (true) {
    // Events are taken before the window is looked at, so that one that comes after it ends the
    // wait.
    if (!*pause) *pause = channel_.TakePause();
    HDPS_RETURN_IF_ERROR(window.Fill(1, 0));
    if (window.size() > 0 || window.at_end() || (*pause && may_pause)) return {};
    HDPS_RETURN_IF_ERROR(channel_.WaitForStep());
  }
}

Result<RoundOutcome> TrainingRound::Run(const Command& train, Clock* clock,
                                        std::optional<Command>* pause, const PlaceStand& taken_up) {
  RoundOutcome round;
  round.examples = taken_up.counts.examples;
  round.loss_sum = taken_up.counts.loss_sum;
  round.bad_rows = taken_up.counts.bad_rows;
  round.labels = taken_up.counts.labels;
  StepWindow& window = steps_.window();
  const uint64_t bad_rows_before = steps_.bad_rows() - taken_up.counts.bad_rows;
  bool stops = false;
  while (*clock < train.until && !stops) {
    const StepTimes before = runner_.times();
    const int64_t begin = time_.NowNs();
    channel_.board().Enter("read");
    if (steps_.follows()) {
      // A step that some servers have is finished first: of a checkpoint it is all or nothing.
      HDPS_RETURN_IF_ERROR(AwaitRows(pause, *clock >= taken_up.reached));
    } else {
      HDPS_RETURN_IF_ERROR(window.Fill(1, 1));
    }
    runner_.times().read_wait_ns += time_.NowNs() - begin;
    if (window.size() == 0 && !window.at_end()) break;  // For a pause.
    if (window.size() == 0) {
      round.end_of_epoch = true;
      break;
    }
    if (!*pause) *pause = channel_.TakePause();
    const PreparedStep& prepared = *window.at(0).prepared;
    for (const StepParts::Part& part : prepared.parts.parts()) {
      round.labels.Add(CountLabels(part.batch));
    }
    // Rows of a step that only some servers have are of no checkpoint.
    const bool all_have_it = *clock + 1 >= taken_up.reached;
    const StepTask task{
        *clock,
        train.until,
        pause->has_value() && all_have_it,
        train.rate,
        train.epoch,
        train.steps_before,
        {round.examples, round.loss_sum, prepared.bad_rows - bad_rows_before, round.labels}};
    HDPS_ASSIGN_OR_RETURN(const StepOutcome step, runner_.Run(window, task));
    StepTimes times = runner_.times().Since(before);
    times.total_ns = time_.NowNs() - begin;
    CountStep(times, step.examples, step.loss_sum, channel_.meters());
    if (*clock < taken_up.reached) {
      ++round.steps_again;
      round.examples_again += step.examples;
    }
    ++*clock;
    stops = step.pause;
    round.examples += step.examples;
    round.loss_sum += step.loss_sum;
    Heartbeat report = log_.AddStep(step, *clock, prepared.progress);
    if (channel_.rank().value == 0) {
      log_.PrintLoss(step, *clock, train.epoch, *clock - train.epoch_start);
    }
    if (cache_ != nullptr) {
      report.cache = cache_->tally();
      Meters& meters = *channel_.meters();
      meters.SetTotal(FigureNamed("hdps_worker_kept_lookups_total"), report.cache.lookups);
      meters.SetTotal(FigureNamed("hdps_worker_kept_hits_total"), report.cache.hits);
    }
    channel_.Report(report);
    if (after_step_) {
      const auto workers = static_cast<uint32_t>(channel_.view()->workers.size());
      after_step_({train.epoch, *clock, step.examples, step.loss_sum, runner_.times(),
                   channel_.rank().value, workers});
    }
    steps_.Pop();
    const uint64_t bad_rows = steps_.bad_rows() - bad_rows_before;
    channel_.meters()->Add(FigureNamed("hdps_worker_bad_rows_total"), bad_rows - round.bad_rows);
    round.bad_rows = bad_rows;
  }
  return round;
}

}  // namespace hdps
