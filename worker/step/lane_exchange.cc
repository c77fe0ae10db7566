// Sums are gathered and added up by everyone: one round trip, and the order is that of the ranks.
#include "worker/step/lane_exchange.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

namespace hdps {
namespace {

// Works that wait. Lanes start a few a layer and end them before the next.
constexpr size_t kWaitingMax = 4096;

void AddTo(std::span<double> sum, std::span<const double> values) {
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += values[i];
}

}  // namespace

LaneExchange::LaneExchange(Collective* group)
    : group_(group != nullptr && group->size() > 1 ? group : nullptr), queue_(kWaitingMax) {
  if (group_ != nullptr) thread_ = StartThread("exchange", [this] { RunAll(); });
}

LaneExchange::~LaneExchange() {
  queue_.Close();
  if (thread_ != nullptr) thread_->Join();
}

void LaneExchange::RunAll() {
  while (const auto work = queue_.Pop()) {
    Status status;
    {
      MutexLock lock(mutex_);
      status = failure_;
    }
    if (status.ok()) status = (*work)(group_);
    MutexLock lock(mutex_);
    if (failure_.ok()) failure_ = std::move(status);
    ++ended_;
    changed_.notify_all();
  }
}

void LaneExchange::BeginStep(std::span<const uint32_t> groups) {
  groups_.assign(groups.begin(), groups.end());
  lane_sums_.assign(groups.size(), 0);
  sums_.clear();
}

void LaneExchange::EndStep() {
  MutexLock lock(mutex_);
  while (ended_ < started_) changed_.wait(mutex_);
}

StepExchange::Ticket LaneExchange::GiveToSum(size_t lane, std::span<const double> values) {
  const size_t ticket = lane_sums_[lane]++;
  if (ticket == sums_.size()) sums_.emplace_back().given.resize(lanes());
  Sum& sum = sums_[ticket];
  sum.given[lane].assign(values.begin(), values.end());
  if (++sum.lanes_given < lanes()) return ticket;
  AddLanes(&sum);
  if (group_ == nullptr) {
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
  std::vector<double> of_group;
  for (size_t begin = 0; begin < lanes();) {
    of_group = sum->given[begin];
    size_t end = begin + 1;
    for (; end < lanes() && groups_[end] == groups_[begin]; ++end) {
      CHECK_EQ(sum->given[end].size(), of_group.size());
      AddTo(of_group, sum->given[end]);
    }
    if (begin == 0) {
      sum->mine = of_group;
    } else {
      AddTo(sum->mine, of_group);
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

StepExchange::Ticket LaneExchange::Start(size_t, std::function<Status(Collective*)> work) {
  const Ticket ticket = ++started_;
  if (thread_ != nullptr) {
    CHECK(queue_.Push(std::move(work)));
    return ticket;
  }
  Status status = work(nullptr);
  MutexLock lock(mutex_);
  if (failure_.ok()) failure_ = std::move(status);
  ++ended_;
  return ticket;
}

Status LaneExchange::Wait(Ticket ticket) {
  MutexLock lock(mutex_);
  while (ended_ < ticket) changed_.wait(mutex_);
  return failure_;
}

}  // namespace hdps
