// Gives the orders of a training round, and leads workers to one clock after a pause.
#include "scheduler/plan/train_round.h"

#include <glog/logging.h>

#include <algorithm>
#include <map>
#include <utility>

namespace hdps {
namespace {

// A pause may overtake its kTrain, so it is repeated while it has no effect.
constexpr TimeMs kPauseAgainMs = 2000;

}  // namespace

TrainRound::TrainRound(uint32_t num_workers, Clock start, Clock until) : until_(until) {
  CHECK_GT(num_workers, 0u);
  workers_.resize(num_workers);
  for (Worker& worker : workers_) worker.clock = start;
}

void TrainRound::TakeOver(uint32_t worker) {
  CHECK_LT(worker, workers_.size());
  started_ = true;
  workers_[worker].running = true;
  ++workers_[worker].orders;
}

Clock TrainRound::Reach() const {
  Clock reach = 0;
  for (const Worker& worker : workers_) {
    const bool in_step = worker.running && worker.stand == Stand::kSteps;
    reach = std::max(reach, in_step ? worker.clock + 1 : worker.clock);
  }
  return std::min(reach, until_);
}

std::vector<TrainRound::Order> TrainRound::TakeOrders(TimeMs now) {
  std::vector<Order> orders;
  const Clock goal = started_ ? Reach() : until_;
  for (uint32_t w = 0; w < workers_.size(); ++w) {
    Worker& worker = workers_[w];
    const bool go = !started_ || (!worker.running && !worker.end_of_epoch && worker.clock < goal);
    if (go) {
      worker.running = true;
      ++worker.orders;
      // A worker that is sent on after a pause stops by itself soon.
      worker.pause_sent = started_;
      worker.paused_at = now;
      worker.before = worker.sums;
      orders.push_back({w, CommandKind::kTrain, goal, worker.clock});
    }
  }
  started_ = true;
  if (!paused_) return orders;
  for (uint32_t w = 0; w < workers_.size(); ++w) {
    Worker& worker = workers_[w];
    if (!worker.running) continue;
    if (worker.pause_sent && now - worker.paused_at < kPauseAgainMs) continue;
    worker.pause_sent = true;
    worker.paused_at = now;
    orders.push_back({w, CommandKind::kPause, 0});
  }
  return orders;
}

void TrainRound::OnProgress(uint32_t worker, Clock clock, Stand stand) {
  CHECK_LT(worker, workers_.size());
  workers_[worker].stand = stand;
  if (workers_[worker].running) workers_[worker].clock = std::max(workers_[worker].clock, clock);
}

void TrainRound::Replace(uint32_t worker) {
  CHECK_LT(worker, workers_.size());
  Worker& w = workers_[worker];
  w.sums = w.before;
  w.running = true;
  w.orders = 1;
  w.stand = Stand::kSteps;
  w.end_of_epoch = w.pause_sent = false;
}

void TrainRound::AskAgain(uint32_t worker) {
  CHECK(!workers_.at(worker).running);
  Worker& w = workers_[worker];
  w.sums = w.before;
  w.running = true;
  w.orders = 1;
  w.stand = Stand::kSteps;
}

void TrainRound::OnTrained(uint32_t worker, const CommandDone& done) {
  CHECK_LT(worker, workers_.size());
  Worker& w = workers_[worker];
  if (w.orders > 0) --w.orders;
  w.running = w.orders > 0;
  w.clock = std::max(w.clock, done.clock);
  w.end_of_epoch = w.end_of_epoch || done.end_of_epoch;
  w.sums.examples += done.examples;
  w.sums.loss_sum += done.loss_sum;
  w.sums.bad_rows += done.bad_rows;
  w.sums.labels.Add(done.label_tally);
  // A replacement is given the last order alone, so the sums of earlier ones stay.
  if (w.running) w.before = w.sums;
}

bool TrainRound::complete() const {
  return started_ && std::all_of(workers_.begin(), workers_.end(), [this](const Worker& worker) {
           return !worker.running && worker.clock == workers_.front().clock;
         });
}

bool TrainRound::OnlyStandingRun() const {
  return started_ && !complete() && std::ranges::all_of(workers_, [](const Worker& worker) {
           return !worker.running || worker.stand == Stand::kHasEnded;
         });
}

Clock TrainRound::furthest() const { return std::ranges::max(workers_, {}, &Worker::clock).clock; }

std::optional<uint32_t> TrainRound::OddOneOut() const {
  // Clocks at which the epoch ended, and the number of workers for each.
  std::map<Clock, uint32_t> ended;
  for (const Worker& worker : workers_)
    ended[worker.clock] += !worker.running && worker.end_of_epoch;
  const auto most = std::ranges::max_element(
      ended, {}, [](const auto& end) { return std::pair(end.second, end.first); });
  if (most->second == 0) return std::nullopt;
  std::optional<uint32_t> odd;
  for (uint32_t w = 0; w < workers_.size(); ++w) {
    const Worker& worker = workers_[w];
    const bool differs = !worker.running && worker.end_of_epoch && worker.clock != most->first;
    if (differs || worker.clock > most->first) odd = w;
  }
  return odd;
}

std::string TrainRound::Disagreement(uint32_t odd) const {
  const bool ended = workers_[odd].end_of_epoch;
  std::string others;
  for (uint32_t w = 0; w < workers_.size(); ++w) {
    if (w == odd) continue;
    others += (others.empty() ? "" : ", ") + std::string("worker ") + std::to_string(w) +
              " at step " + std::to_string(workers_[w].clock);
  }
  return "worker " + std::to_string(odd) +
         (ended ? " came to the end of the epoch at step " : " is at step ") +
         std::to_string(workers_[odd].clock) +
         ", the others came to its end or are elsewhere: " + others +
         "; do all of them see the same data files?";
}

bool TrainRound::end_of_epoch() const {
  return std::any_of(workers_.begin(), workers_.end(),
                     [](const Worker& worker) { return worker.end_of_epoch; });
}

TrainRound::Sums TrainRound::sums() const {
  Sums total = workers_.front().sums;
  for (size_t w = 1; w < workers_.size(); ++w) {
    total.examples += workers_[w].sums.examples;
    total.loss_sum += workers_[w].sums.loss_sum;
    total.bad_rows += workers_[w].sums.bad_rows;
    total.labels.Add(workers_[w].sums.labels);
  }
  return total;
}

}  // namespace hdps
