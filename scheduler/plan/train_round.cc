// Orders of a training round, and the way to one clock after a pause.
#include "scheduler/plan/train_round.h"

#include <glog/logging.h>

#include <algorithm>

namespace hdps {
namespace {

// A pause may overtake the kTrain it is meant for; so it is said again while nothing comes of it.
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
    reach = std::max(reach, worker.running ? worker.clock + 1 : worker.clock);
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
      // A worker that is sent on after a pause stops by itself, and soon.
      worker.pause_sent = started_;
      worker.paused_at = now;
      orders.push_back({w, CommandKind::kTrain, goal});
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

void TrainRound::OnProgress(uint32_t worker, Clock clock) {
  CHECK_LT(worker, workers_.size());
  if (workers_[worker].running) workers_[worker].clock = std::max(workers_[worker].clock, clock);
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
}

bool TrainRound::complete() const {
  return started_ && std::all_of(workers_.begin(), workers_.end(), [this](const Worker& worker) {
           return !worker.running && worker.clock == workers_.front().clock;
         });
}

std::string TrainRound::Disagreement() const {
  Clock furthest = 0;
  for (const Worker& worker : workers_) furthest = std::max(furthest, worker.clock);
  for (uint32_t w = 0; w < workers_.size(); ++w) {
    if (workers_[w].running || !workers_[w].end_of_epoch || workers_[w].clock == furthest) continue;
    return "worker " + std::to_string(w) + " came to the end of the epoch at step " +
           std::to_string(workers_[w].clock) + ", another worker is at step " +
           std::to_string(furthest) + "; do all of them see the same data files?";
  }
  return "";
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
