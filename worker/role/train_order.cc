// Carries out an order to train: forms the groups, opens the steps, runs them, and answers.
#include <glog/logging.h>

#include <optional>
#include <string>
#include <utility>

#include "common/job/job_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/platform/failpoint.h"
#include "common/protocol/view.h"
#include "worker/role/trainer.h"

namespace hdps {

Status Trainer::Train(const Command& command) {
  std::optional<Command> pause;
  Status status = TrainTogether(command, &pause);
  while (!status.ok() && TakesUpWithOthers(&status)) {
    Command again = command;
    again.begun = true;
    status = TrainTogether(again, &pause);
  }
  HDPS_RETURN_IF_ERROR(status);
  return pause ? Execute(*pause) : Status();
}

Status Trainer::TrainTogether(const Command& command, std::optional<Command>* pause) {
  HDPS_RETURN_IF_ERROR(FollowStrategy());
  HDPS_ASSIGN_OR_RETURN(const PlaceStand taken_up, TakeUp(command));
  DenseReplica& kept = dense_->kept;
  if (kept.used()) {
    HDPS_RETURN_IF_ERROR(JoinGroup());
    HDPS_RETURN_IF_ERROR(kept.Load(place(), clock_));
    runner_->set_group(kept.InGroup(*groups_.sum()));
  }
  if (part_.model().has_exchange()) HDPS_RETURN_IF_ERROR(JoinLanes());
  if (cache_ != nullptr) HDPS_RETURN_IF_ERROR(JoinCache());
  channel_.board().Enter("train");
  HDPS_RETURN_IF_ERROR(OpenSteps(command, taken_up));
  HDPS_FAILPOINT("worker.train.begun");
  const int64_t begin = time_.NowNs();
  TrainingRound round(channel_, time_, steps_, *runner_, cache_.get(), options_.after_step, log_);
  HDPS_ASSIGN_OR_RETURN(const RoundOutcome outcome, round.Run(command, &clock_, pause, taken_up));
  steps_.window().CancelRequests();
  channel_.board().Enter("push");
  HDPS_RETURN_IF_ERROR(runner_->Settle());
  if (part_.rank_model() != nullptr) {
    HDPS_RETURN_IF_ERROR(kept.StoreSlices(*groups_.sum(), clock_));
  }
  if (cache_ != nullptr) HDPS_RETURN_IF_ERROR(cache_->Flush(clock_));
  runner_->times().total_ns = time_.NowNs() - begin;
  log_.EndRound(command.epoch, clock_, std::exchange(runner_->times(), StepTimes()),
                part_.whole().ops(), cache_.get());
  AnswerTrained(command, outcome);
  return Status();
}

void Trainer::AnswerTrained(const Command& command, const RoundOutcome& outcome) {
  const DenseReplica& kept = dense_->kept;
  CommandDone done = AnswerTo(command);
  done.clock = clock_;
  done.end_of_epoch = outcome.end_of_epoch;
  done.examples = outcome.examples;
  done.loss_sum = outcome.loss_sum;
  done.bad_rows = outcome.bad_rows;
  done.steps_again = outcome.steps_again;
  done.examples_again = outcome.examples_again;
  done.offsets = steps_.offsets();
  if (job().data.follow && channel_.rank().value == 0) data_.MarkOpened();
  done.data_files = data_.opened();
  data_.LookAtTraining("epoch " + std::to_string(command.epoch + 1) +
                       " was reading it, and some of its rows may be the old ones");
  done.data_changes = data_.TakeChanges();
  done.label_tally = outcome.labels;
  if (scores_.used()) scores_.FillIn(place().rank, place().workers, &done);
  if (cache_ != nullptr) done.cache = cache_->tally();
  const CollectiveCounts counts = groups_.counts();
  done.collectives = TallyOf(counts, kept.host_state_bytes() + kept.device_state_bytes());
  if (groups_.sum() != nullptr) {
    LOG(INFO) << "collectives: " << counts.Describe()
              << "; optimizer state kept here: " << kept.host_state_bytes()
              << " bytes in the host's memory, " << kept.device_state_bytes() << " on the GPU";
  }
  channel_.Answer(std::move(done));
}

}  // namespace hdps
