// Sums values over lanes and workers: every worker gathers all contributions and adds them in the
// order of the ranks, which takes one round trip.
#include "worker/step/lane_exchange.h"
#include "common/telemetry/span_recorder.h"

#include <glog/logging.h>

#include <algorithm>
#include <string>
#include <utility>

namespace hdps {
namespace {

void AddTo(std::span<double> sum, std::span<const double> values) {
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += values[i];
}

}  // namespace

LaneExchange::LaneExchange(std::span<Collective* const> groups, MonotonicClock& clock) {
  for (Collective* const group : groups) {
    if (group->size() == 1) break;
    queues_.push_back(std::make_unique<CollectiveQueue>(*group, clock));
  }
}

void LaneExchange::BeginStep(std::span<const uint32_t> micro_batches) {
  micro_batches_.assign(micro_batches.begin(), micro_batches.end());
  lane_sums_.assign(micro_batches.size(), 0);
  sums_.clear();
}

Status LaneExchange::EndStep(const Status& status) {
  Status first = status.ok() ? alone_ : status;
  for (const auto& queue : queues_) {
    if (!first.ok()) queue->group().Abort();
  }
  for (const auto& queue : queues_) {
    Status ended = queue->WaitForAll();
    if (first.ok()) first = std::move(ended);
  }
  return first;
}

StepExchange::Ticket LaneExchange::GiveToSum(size_t lane, std::span<const double> values) {
  const size_t ticket = lane_sums_[lane]++;
  if (ticket == sums_.size()) sums_.emplace_back().given.resize(lanes());
  Sum& sum = sums_[ticket];
  sum.given[lane].assign(values.begin(), values.end());
  if (++sum.lanes_given < lanes()) return ticket;
  AddLanes(&sum);
  if (queues_.empty()) {
    sum.added = true;
    return ticket;
  }
  sum.all.resize(sum.mine.size() * workers());
  sum.started = Start(lane, [&sum](Collective* group) {
    const std::vector<size_t> sizes(group->size(), sum.mine.size() * sizeof(double));
    return group->AllGather(std::as_bytes(std::span(sum.mine)), sizes,
                            std::as_writable_bytes(std::span(sum.all)));
  });
  return ticket;
}

Status LaneExchange::TakeSum(Ticket ticket, std::span<double> values) {
  Sum& sum = sums_[ticket];
  CHECK_EQ(sum.lanes_given, lanes()) << "a lane has not given yet";
  if (!sum.added) {
    HDPS_RETURN_IF_ERROR(Wait(sum.started));
    AddWorkers(&sum);
  }
  CHECK_EQ(values.size(), sum.mine.size());
  std::ranges::copy(sum.mine, values.begin());
  return {};
}

void LaneExchange::AddLanes(Sum* sum) const {
  std::vector<double> of_one;
  for (size_t begin = 0; begin < lanes();) {
    of_one = sum->given[begin];
    size_t end = begin + 1;
    for (; end < lanes() && micro_batches_[end] == micro_batches_[begin]; ++end) {
      CHECK_EQ(sum->given[end].size(), of_one.size());
      AddTo(of_one, sum->given[end]);
    }
    if (begin == 0) {
      sum->mine = of_one;
    } else {
      AddTo(sum->mine, of_one);
    }
    begin = end;
  }
  sum->given.clear();
}

void LaneExchange::AddWorkers(Sum* sum) const {
  const size_t count = sum->mine.size();
  const std::span<const double> all(sum->all);
  std::ranges::copy(all.first(count), sum->mine.begin());
  for (uint32_t r = 1; r < workers(); ++r) AddTo(sum->mine, all.subspan(r * count, count));
  sum->added = true;
}

StepExchange::Ticket LaneExchange::Start(size_t lane, std::function<Status(Collective*)> work) {
  if (queues_.empty()) {
    if (alone_.ok()) alone_ = work(nullptr);
    return 0;
  }
  const size_t queue = lane % queues_.size();
  const auto ticket = queues_[queue]->Submit(
      [work = std::move(work), lane, queue, recorder = recorder_](Collective& group) {
        const RecordedSpan span(
            recorder, [queue] { return "exchange " + std::to_string(queue); },
            [lane] { return "of lane " + std::to_string(lane); });
        return work(&group);
      });
  return ticket.number * queues_.size() + queue;
}

Status LaneExchange::Wait(Ticket ticket) {
  if (queues_.empty()) return alone_;
  return queues_[ticket % queues_.size()]->Wait({ticket / queues_.size()});
}

}  // namespace hdps
