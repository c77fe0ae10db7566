// Sends the orders of a round, and adds its result to the job.
#include "scheduler/phases/train.h"

#include <algorithm>
#include <string>
#include <utility>

#include "common/job/eval_sets.h"
#include "common/job/job_facts.h"
#include "common/job/job_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/train_spec.h"
#include "scheduler/members/membership.h"
#include "scheduler/phases/pending_save.h"
#include "scheduler/phases/worker_facts.h"

namespace hdps {

namespace {

// Takes where one worker's partitions are now; those of others stay.
void TakeOffsets(const std::vector<PartitionOffset>& told, std::vector<PartitionOffset>* known) {
  for (const PartitionOffset& at : told) {
    const auto place =
        std::ranges::lower_bound(*known, at.partition, {}, &PartitionOffset::partition);
    if (place != known->end() && place->partition == at.partition) {
      *place = at;
    } else {
      known->insert(place, at);
    }
  }
}

}  // namespace

void TrainPhase::MakeRound(JobAtHand& job, TimeMs now) {
  round_.emplace(parts_.members.workers().size(), job.plan->position().clock, job.Until());
  job.training_since = now;
  to_meet_.clear();
}

Next TrainPhase::Begin(const Turn& turn) {
  parts_.report.GoOn(turn.now);
  MakeRound(turn.job, turn.now);
  PauseIfDue(turn.job);
  SendOrders(turn);
  return Next::Wait();
}

void TrainPhase::TakeOver(JobAtHand& job, TimeMs now) {
  MakeRound(job, now);
  for (const JobRecord::Order& order : job.record.orders) {
    round_->TakeOver(*parts_.members.WorkerRank(order.worker));
  }
  PauseIfDue(job);
}

bool TrainPhase::ProgramsHaveEnded() const {
  return IsTablesJob(parts_.job) && parts_.members.AllFinished();
}

bool TrainPhase::SaveIsWanted(const JobAtHand& job, Clock clock) const {
  return IsTablesJob(parts_.job) && parts_.members.WantsCheckpoint(job.plan->newest_save(), clock);
}

WantedSave TrainPhase::DueByTheClock(const JobAtHand& job, Clock clock, TimeMs now) const {
  if (job.script != nullptr) return WantedSave::kNone;
  const bool newer = clock > std::max<Clock>(job.plan->newest_save(), 0);
  return newer && !parts_.pending.under_way() ? job.save_times.Due(now) : WantedSave::kNone;
}

bool TrainPhase::AgesAreDue(const JobAtHand& job, Clock clock, TimeMs now) {
  const std::vector<StepTime>& times = job.record.step_times;
  if (job.script != nullptr) return false;
  return clock > (times.empty() ? 0 : times.back().clock) &&
         job.row_ages.Due(times, job.TrainedMs(now));
}

bool TrainPhase::EvictsNow(JobAtHand& job, Clock clock, TimeMs now) {
  if (!AgesAreDue(job, clock, now)) return false;
  std::vector<StepTime>& times = job.record.step_times;
  job.row_ages.Note({clock, job.TrainedMs(now)}, &times);
  return std::ranges::any_of(job.row_ages.LastSteps(times), [](Clock last) { return last > 0; });
}

void TrainPhase::PauseIfDue(const JobAtHand& job) {
  const Clock furthest = round_->furthest();
  // Workers come to the end of a script by themselves, as they did when it was written.
  const bool stops = job.StopIsDueAt(furthest) && !job.EndsByScript();
  if (job.quiet_wanted || stops || SaveIsWanted(job, furthest) || round_->OnlyStandingRun() ||
      ProgramsHaveEnded()) {
    round_->Pause();
  }
}

void TrainPhase::SendOrders(const Turn& turn) {
  const JobPosition& position = turn.job.plan->position();
  for (const TrainRound::Order& order : round_->TakeOrders(turn.now)) {
    Command command = MakeCommand(order.command);
    command.until = order.until;
    command.since = order.from;
    command.rate = turn.job.watches.state().rate;
    command.steps_before = turn.job.record.steps_before;
    command.epoch = position.epoch;
    command.epoch_start = position.epoch_start;
    command.offsets = turn.job.record.offsets;
    turn.orders.Send({parts_.members.workers()[order.worker]}, command);
  }
}

void TrainPhase::Replace(uint32_t rank, PeerId from, const Turn& turn) {
  std::vector<JobRecord::Order>& orders = turn.job.record.orders;
  std::optional<Command> last;
  for (const JobRecord::Order& order : orders) {
    if (order.worker == from) last = order.command;
  }
  std::erase_if(orders, [&](const JobRecord::Order& order) { return order.worker == from; });
  turn.orders.dropped.push_back(from);
  if (!last) return;  // It was lost before it had one.
  round_->Replace(rank);
  last->begun = !turn.job.heir_begins_anew;
  turn.orders.Send({parts_.members.workers()[rank]}, *last);
}

void TrainPhase::MeetAgain(uint32_t rank, const Turn& turn) {
  // An answer may be on its way. So one that comes is followed by another order, which ends at once
  // if the worker has met the others.
  if (round_->runs(rank)) {
    to_meet_.insert(rank);
  } else {
    AskAgain(rank, turn);
  }
}

void TrainPhase::AskAgain(uint32_t rank, const Turn& turn) {
  const PeerId worker = parts_.members.workers()[rank];
  std::vector<JobRecord::Order>& orders = turn.job.record.orders;
  const auto last =
      std::find_if(orders.rbegin(), orders.rend(),
                   [&](const JobRecord::Order& order) { return order.worker == worker; });
  if (last == orders.rend()) return;
  Command again = last->command;
  std::erase_if(orders, [&](const JobRecord::Order& order) { return order.worker == worker; });
  again.begun = true;
  again.until = round_->clock_of(rank);
  round_->AskAgain(rank);
  turn.orders.Send({worker}, again);
}

// Takes a worker's answer. A worker that disagrees with the others is blamed: another process in
// its place may agree. If it does not, or if there are no others, the data is to blame.
Next TrainPhase::OnAnswer(const Answer& answer, const Turn& turn) {
  if (answer.command.command != CommandKind::kTrain) return Next::Wait();
  round_->OnTrained(*parts_.members.WorkerRank(answer.from), answer.done);
  parts_.members.OnCache(answer.from, answer.done.cache);
  if (parts_.job.train.progressive.window > 0) {
    progressive_.Take(*parts_.members.WorkerRank(answer.from), answer.done);
  }
  parts_.facts.KnowTraining(answer.from, answer.done);
  TakeOffsets(answer.done.offsets, &turn.job.record.offsets);
  turn.job.record.summary.steps_again += answer.done.steps_again;
  turn.job.record.summary.examples_again += answer.done.examples_again;
  if (const std::optional<uint32_t> odd = round_->OddOneOut()) {
    return Next::Blame(parts_.members.workers()[*odd], answer.command, round_->Disagreement(*odd));
  }
  const uint32_t rank = *parts_.members.WorkerRank(answer.from);
  if (!round_->runs(rank) && to_meet_.erase(rank) > 0) AskAgain(rank, turn);
  SendOrders(turn);
  return Next::Wait();
}

Next TrainPhase::OnTick(const Turn& turn) {
  PauseIfDue(turn.job);
  const Clock furthest = round_->furthest();
  if (DueByTheClock(turn.job, furthest, turn.now) != WantedSave::kNone ||
      AgesAreDue(turn.job, furthest, turn.now)) {
    round_->Pause();
  }
  SendOrders(turn);
  return Next::Wait();
}

TrainRound::Sums TrainPhase::AddSums(JobRecord& record) const {
  // Under full_batch every worker has counted the same examples.
  const bool same_for_all = parts_.job.parallel.dataset_strategy == DatasetStrategy::kFullBatch;
  const TrainRound::Sums sums = same_for_all ? round_->sums_of_first() : round_->sums();
  record.examples_worked += sums.examples;
  for (JobRecord::Sums* total : {&record.trained, &record.epoch}) {
    total->examples += sums.examples;
    total->loss_sum += sums.loss_sum;
  }
  record.summary.bad_rows += sums.bad_rows;
  record.summary.unknown_ids += sums.labels.unknown_ids;
  return sums;
}

void TrainPhase::TellProgressive(const Turn& turn, const ProgressState& state) {
  Evaluation figures = progressive_.Finish(parts_.job, parts_.files, parts_.out);
  parts_.report.Evaluated(turn.now, state, figures, kProgressiveName);
  parts_.notice("step " + std::to_string(state.clock) + ", before learning: " + Describe(figures));
  turn.job.record.summary.progressive = std::move(figures);
}

Next TrainPhase::OnAllAnswered(const Turn& turn) {
  if (!round_->complete()) return Next::Wait();
  JobAtHand& job = turn.job;
  // Programs that have ended have trained all they wanted: the one epoch of such a job.
  const bool end_of_epoch = round_->end_of_epoch() || ProgramsHaveEnded();
  const Clock clock = round_->clock();
  const TrainRound::Sums sums = AddSums(job.record);
  parts_.facts.KnowLabelsTrained(sums.labels, end_of_epoch);
  const JobPosition position = job.plan->position();
  if (end_of_epoch && clock == position.epoch_start && !IsTablesJob(parts_.job)) {
    return Next::Fail(2, "data.train: epoch " + std::to_string(position.epoch + 1) +
                             " has no step: the files hold no example that could be read");
  }
  if (end_of_epoch) job.record.last_epoch = std::exchange(job.record.epoch, JobRecord::Sums());
  if (job.StopIsDueAt(clock)) job.plan->Stop();
  const WantedSave save =
      SaveIsWanted(job, clock) ? WantedSave::kAll : DueByTheClock(job, clock, turn.now);
  job.plan->Trained(clock, end_of_epoch, save);
  ProgressState state = job.Progress(parts_.job, parts_.members);
  job.EndTraining(turn.now);
  if (end_of_epoch) {  // The next epoch has not begun.
    state.epoch_progress = 0;
    state.epoch_begun = false;
  }
  parts_.report.Progress(turn.now, state);
  if (parts_.job.train.progressive.window > 0 && clock > position.clock) {
    TellProgressive(turn, state);
  }
  return EvictsNow(job, clock, turn.now) ? Next::Enter(JobPhase::kEvict) : Next::Done();
}

}  // namespace hdps
