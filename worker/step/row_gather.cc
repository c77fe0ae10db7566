// Requests out, replies put in their places.
#include "worker/step/row_gather.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "common/job/job_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/protocol/message_frames.h"
#include "common/protocol/row_messages.h"

namespace hdps {

RowGather::RowGather(const Job& job, NodeChannel& channel, MonotonicClock& clock)
    : job_(job),
      channel_(channel),
      clock_(clock),
      rows_(job.tables.size()),
      views_(job.tables.size()) {}

RowGather::~RowGather() { Forget(); }

RowGather::Flight RowGather::Send(PullPlan plan, std::vector<ServerRequest> requests) {
  Flight flight{std::nullopt, std::move(plan), clock_.NowNs()};
  if (!requests.empty()) flight.ticket = channel_.Start(std::move(requests));
  return flight;
}

void RowGather::AskAhead(const PreparedStep& step, const RowTerms& terms) {
  CHECK(!asked() && !asked_ahead());
  step_ = &step;
  format_ = job_.parallel.wire;
  in_place_ = false;  // A repair changes some of them.
  PullPlan plan;
  std::vector<ServerRequest> requests =
      plan.Pull(step.split, {terms.clock, PullMode::kPrefetch, terms.pushed, terms.list, format_});
  ahead_ = Send(std::move(plan), std::move(requests));
  holds_ = job_.train.mode == Mode::kSync ? terms.pushed : kNotRead;
}

void RowGather::Ask(const PreparedStep& step, const RowTerms& terms, PullMode mode) {
  CHECK(!asked());
  wanted_ = terms;
  if (asked_ahead()) {
    CHECK(step_ == &step && mode == PullMode::kTrain);
    if (holds_ != kNotRead && !Arrived(*ahead_)) {
      std::vector<Clock> since(step.split.num_servers(), kNotRead);
      for (const PullPlan::Asked& asked : ahead_->plan.asked()) since[asked.server.value] = holds_;
      Repair(since);
    }
    ready();  // What was read ahead is usually here.
    return;
  }
  step_ = &step;
  // What is read to be judged is what a checkpoint would hold.
  format_ = mode == PullMode::kTrain ? job_.parallel.wire : DType::kFp32;
  in_place_ = terms.in_place && format_ == DType::kFp32;
  PullPlan plan;
  std::vector<ServerRequest> requests =
      plan.Pull(step.split, {terms.clock, mode, terms.pushed, terms.list, format_});
  last_ = Send(std::move(plan), std::move(requests));
}

bool RowGather::ready() {
  CHECK(asked());
  if (ahead_.has_value() && status_.ok()) {
    if (!Arrived(*ahead_)) return false;
    status_ = LandAhead();
  }
  return !status_.ok() || Arrived(*last_);
}

Status RowGather::LandAhead() {
  const Flight flight = *std::exchange(ahead_, std::nullopt);
  HDPS_ASSIGN_OR_RETURN(const std::vector<PullReply> replies, Land(flight));
  std::vector<Clock> since(step_->split.num_servers(), kNotRead);
  bool older = false;  // Than was asked for: by a server that has begun again.
  for (size_t i = 0; i < replies.size(); ++i) {
    since[flight.plan.asked()[i].server.value] = replies[i].min_clock;
    older = older || replies[i].min_clock < holds_;
  }
  if (last_.has_value() && older && last_->ticket) channel_.Cancel(*last_->ticket);
  if (!last_.has_value() || older) Repair(since);
  // Put in place while the servers look for what has changed.
  return Place(flight, replies, std::nullopt);
}

void RowGather::Repair(std::span<const Clock> since) {
  const bool sync = job_.train.mode == Mode::kSync;
  PullPlan plan;
  std::vector<ServerRequest> requests =
      plan.Repair(step_->split, {wanted_->clock, wanted_->pushed, wanted_->list, since,
                                 /*changes=*/sync, format_});
  last_ = Send(std::move(plan), std::move(requests));
}

Result<std::vector<PullReply>> RowGather::Land(const Flight& flight) {
  std::vector<PullReply> replies(flight.plan.asked().size());
  if (!flight.ticket.has_value()) return replies;
  const int64_t begin = clock_.NowNs();
  int64_t arrived = begin;
  HDPS_ASSIGN_OR_RETURN(const std::vector<Frame> frames, channel_.Wait(*flight.ticket, &arrived));
  hidden_ns_ += std::max<int64_t>(std::min(begin, arrived) - flight.sent_ns, 0);
  CHECK_EQ(frames.size(), replies.size());
  for (size_t i = 0; i < frames.size(); ++i) {
    HDPS_RETURN_IF_ERROR(DecodeMessage(frames[i], &replies[i]));
    if (replies[i].code != Code::kOk) return Status(replies[i].code, replies[i].message);
    if (replies[i].format != format_) {
      return Status(Code::kCorruption, "rows came in another number of bits than asked for");
    }
  }
  return replies;
}

Status RowGather::Place(const Flight& flight, const std::vector<PullReply>& replies,
                        std::optional<std::span<float>> dense) {
  std::vector<std::span<float>> places;
  std::vector<TableId> tables;
  for (uint32_t t = 0; t < job_.tables.size(); ++t) {
    if (job_.tables[t].dense) continue;
    tables.push_back({t});
    std::vector<float>& rows = rows_[t];
    const bool stays = in_place_ && step_->split.InPieces(places.size());
    rows.resize(stays ? 0 : step_->parts.KeysOf({t}).size() * job_.tables[t].dim);
    views_[t] = rows;
    places.push_back(rows);
  }
  std::vector<RowSpans<const float>> in_place(in_place_ ? step_->split.num_tables() : 0);
  if (step_->split.num_tables() > places.size()) {
    places.push_back(dense.value_or(std::span<float>()));
  }
  for (size_t i = 0; i < replies.size(); ++i) {
    HDPS_RETURN_IF_ERROR(flight.plan.Scatter(i, replies[i], places, in_place));
    if (in_place_) held_.push_back(replies[i].rows);
  }
  for (size_t i = 0; in_place_ && i < tables.size(); ++i) {
    if (!in_place[i].empty()) views_[tables[i].value] = in_place[i];
  }
  return Status();
}

Status RowGather::Take(std::optional<std::span<float>> dense) {
  while (!ready()) channel_.WaitForAnything();
  wanted_.reset();
  HDPS_RETURN_IF_ERROR(std::exchange(status_, Status()));
  const Flight flight = *std::exchange(last_, std::nullopt);
  HDPS_ASSIGN_OR_RETURN(const std::vector<PullReply> replies, Land(flight));
  return Place(flight, replies, dense);
}

void RowGather::TakeMemoryOf(RowGather& done) {
  const auto has_memory = [](const std::vector<float>& rows) { return rows.capacity() > 0; };
  if (std::none_of(rows_.begin(), rows_.end(), has_memory)) std::swap(rows_, done.rows_);
}

void RowGather::Forget() {
  for (const std::optional<Flight>* flight : {&ahead_, &last_}) {
    if (flight->has_value() && (*flight)->ticket) channel_.Cancel(*(*flight)->ticket);
  }
  ahead_.reset();
  last_.reset();
  wanted_.reset();
  held_.clear();
  status_ = Status();
}

}  // namespace hdps
