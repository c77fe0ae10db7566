// Requests the rows of a step, and puts the replies in place.
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
#include "worker/exchange/staleness_seen.h"

namespace hdps {

RowGather::RowGather(const Job& job, NodeChannel& channel, MonotonicClock& clock)
    : job_(job),
      channel_(channel),
      clock_(clock),
      rows_(job.tables.size()),
      views_(job.tables.size()) {}

RowGather::~RowGather() { CancelRequests(); }

RowGather::PendingPull RowGather::Send(PullPlan plan, std::vector<ServerRequest> requests) {
  PendingPull pull{std::nullopt, std::move(plan), clock_.NowNs()};
  if (!requests.empty()) pull.ticket = channel_.Start(std::move(requests));
  return pull;
}

void RowGather::PrefetchRows(const PreparedStep& step, const RowTerms& terms) {
  CHECK(!requested() && !has_prefetch());
  step_ = &step;
  format_ = job_.parallel.wire;
  in_place_ = false;  // A repair overwrites some of these rows.
  lists_.resize(step.lists.size());
  for (uint32_t i = 0; i < lists_.size(); ++i) {
    PullPlan plan;
    std::vector<ServerRequest> requests =
        plan.Pull(step.lists[i],
                  {terms.clock, PullMode::kPrefetch, terms.pushed, terms.list + i, format_, i});
    lists_[i].ahead = Send(std::move(plan), std::move(requests));
    lists_[i].holds = job_.train.mode == Mode::kSync ? terms.pushed : kNotRead;
  }
}

void RowGather::RequestRows(const PreparedStep& step, const RowTerms& terms, PullMode mode) {
  CHECK(!requested());
  CHECK(!has_prefetch() || (step_ == &step && mode == PullMode::kTrain));
  wanted_ = terms;
  trains_ = mode == PullMode::kTrain;
  if (!has_prefetch()) {
    step_ = &step;
    // Evaluation reads full precision, because a checkpoint would hold the same bits.
    format_ = mode == PullMode::kTrain ? job_.parallel.wire : DType::kFp32;
    // The rows of several lists lie between each other.
    in_place_ = terms.in_place && format_ == DType::kFp32 && step.lists.size() == 1;
    lists_.resize(step.lists.size());
  }
  for (ListPulls& pulls : lists_) pulls.counted = false;
  for (size_t i = 0; i < lists_.size(); ++i) RequestList(i, mode);
}

void RowGather::RequestList(size_t list, PullMode mode) {
  ListPulls& pulls = lists_[list];
  const KeySplit& split = step_->lists[list];
  if (pulls.ahead.has_value()) {
    if (pulls.holds != kNotRead && !Arrived(*pulls.ahead)) {
      std::vector<Clock> since(split.num_servers(), kNotRead);
      for (const PullPlan::Asked& asked : pulls.ahead->plan.asked()) {
        since[asked.server.value] = pulls.holds;
      }
      Repair(list, since);
    }
    ready(list);  // Rows that were prefetched have usually arrived by now.
    return;
  }
  PullPlan plan;
  std::vector<ServerRequest> requests =
      plan.Pull(split, {wanted_->clock, mode, wanted_->pushed, NumberOf(list), format_,
                        static_cast<uint32_t>(list)});
  pulls.last = Send(std::move(plan), std::move(requests));
}

uint64_t RowGather::NumberOf(size_t list) const {
  return wanted_->list == 0 ? 0 : wanted_->list + list;
}

bool RowGather::ready(size_t list) {
  CHECK(requested());
  ListPulls& pulls = lists_[list];
  if (pulls.ahead.has_value() && pulls.status.ok()) {
    if (!Arrived(*pulls.ahead)) return false;
    pulls.status = PlacePrefetched(list);
  }
  return !pulls.status.ok() || Arrived(*pulls.last);
}

Status RowGather::PlacePrefetched(size_t list) {
  ListPulls& pulls = lists_[list];
  const PendingPull pull = *std::exchange(pulls.ahead, std::nullopt);
  HDPS_ASSIGN_OR_RETURN(const std::vector<PullReply> replies, TakeReplies(pull));
  std::vector<Clock> since(step_->lists[list].num_servers(), kNotRead);
  // Whether a server returned older rows than were asked for; it has restarted then.
  bool older = false;
  for (size_t i = 0; i < replies.size(); ++i) {
    since[pull.plan.asked()[i].server.value] = replies[i].min_clock;
    older = older || replies[i].min_clock < pulls.holds;
  }
  if (pulls.last.has_value() && older && pulls.last->ticket) channel_.Cancel(*pulls.last->ticket);
  if (!pulls.last.has_value() || older) Repair(list, since);
  // In sync the rows that have changed since are read again.
  if (job_.train.mode != Mode::kSync) CountAge(list, wanted_->clock, replies);
  // The rows are put in place while the servers look for what has changed since.
  return Place(list, pull, replies, std::nullopt);
}

void RowGather::Repair(size_t list, std::span<const Clock> since) {
  const bool sync = job_.train.mode == Mode::kSync;
  PullPlan plan;
  std::vector<ServerRequest> requests =
      plan.Repair(step_->lists[list], {wanted_->clock, wanted_->pushed, NumberOf(list), since,
                                       /*changes=*/sync, format_, static_cast<uint32_t>(list)});
  lists_[list].last = Send(std::move(plan), std::move(requests));
}

Result<std::vector<PullReply>> RowGather::TakeReplies(const PendingPull& pull) {
  std::vector<PullReply> replies(pull.plan.asked().size());
  if (!pull.ticket.has_value()) return replies;
  const int64_t begin = clock_.NowNs();
  int64_t arrived = begin;
  HDPS_ASSIGN_OR_RETURN(const std::vector<Frame> frames, channel_.Wait(*pull.ticket, &arrived));
  // The pulls of several lists overlap each other; a time counts once.
  channel_.meters()->Observe(FigureNamed("hdps_worker_pull_seconds"), arrived - pull.sent_ns);
  hidden_ns_ +=
      std::max<int64_t>(std::min(begin, arrived) - std::max(pull.sent_ns, counted_ns_), 0);
  counted_ns_ = std::max(begin, arrived);
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

Status RowGather::Place(size_t list, const PendingPull& pull, const std::vector<PullReply>& replies,
                        std::optional<std::span<float>> dense) {
  const KeySplit& split = step_->lists[list];
  std::vector<std::span<float>> places;
  std::vector<TableId> tables;
  for (uint32_t t = 0; t < job_.tables.size(); ++t) {
    if (job_.tables[t].dense) continue;
    tables.push_back({t});
    std::vector<float>& rows = rows_[t];
    const bool stays = in_place_ && split.IsContiguous(places.size());
    rows.resize(stays ? 0 : step_->parts.KeysOf({t}).size() * job_.tables[t].dim);
    views_[t] = rows;
    places.push_back(rows);
  }
  std::vector<RowSpans<const float>> in_place(in_place_ ? split.num_tables() : 0);
  if (split.num_tables() > places.size()) {
    places.push_back(dense.value_or(std::span<float>()));
  }
  for (size_t i = 0; i < replies.size(); ++i) {
    HDPS_RETURN_IF_ERROR(pull.plan.Scatter(i, replies[i], places, in_place));
    if (in_place_) held_.push_back(replies[i].rows);
  }
  for (size_t i = 0; in_place_ && i < tables.size(); ++i) {
    if (!in_place[i].empty()) views_[tables[i].value] = in_place[i];
  }
  return Status();
}

void RowGather::CountAge(size_t list, Clock clock, const std::vector<PullReply>& replies) {
  if (!trains_ || std::exchange(lists_[list].counted, true)) return;
  CountStaleness(clock, replies, channel_.meters());
}

Status RowGather::Take(std::optional<std::span<float>> dense, size_t list) {
  while (!ready(list)) channel_.WaitForAnything();
  const Clock clock = wanted_->clock;
  if (list + 1 == lists_.size()) wanted_.reset();
  HDPS_RETURN_IF_ERROR(std::exchange(lists_[list].status, Status()));
  const PendingPull pull = *std::exchange(lists_[list].last, std::nullopt);
  HDPS_ASSIGN_OR_RETURN(const std::vector<PullReply> replies, TakeReplies(pull));
  CountAge(list, clock, replies);
  return Place(list, pull, replies, dense);
}

void RowGather::TakeMemoryOf(RowGather& done) {
  const auto has_memory = [](const std::vector<float>& rows) { return rows.capacity() > 0; };
  if (std::none_of(rows_.begin(), rows_.end(), has_memory)) std::swap(rows_, done.rows_);
}

void RowGather::CancelRequests() {
  for (const ListPulls& pulls : lists_) {
    for (const std::optional<PendingPull>* pull : {&pulls.ahead, &pulls.last}) {
      if (pull->has_value() && (*pull)->ticket) channel_.Cancel(*(*pull)->ticket);
    }
  }
  lists_.clear();
  wanted_.reset();
  held_.clear();
}

}  // namespace hdps
