// Makes the requests of pulls and pushes, and puts the rows of replies in place.
#include "worker/outside/table_exchange.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "common/job/job_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/protocol/message_frames.h"
#include "common/protocol/row_messages.h"
#include "common/protocol/view.h"
#include "worker/exchange/staleness_seen.h"
#include "worker/step/own_norm.h"

namespace hdps {

TableExchange::TableExchange(const TableWorkerOptions& options, NodeChannel& channel)
    : job_(*options.job),
      channel_(channel),
      executor_(options.executor),
      rows_in_replies_(options.rows_in_replies),
      sync_(job_.train.mode == Mode::kSync),
      clips_all_(job_.train.clip_norm > 0 && sync_),
      gate_(job_, channel),
      gradients_(job_, executor_, SectionMaker(),
                 job_.parallel.wire == DType::kFp32 && (job_.train.clip_norm == 0 || clips_all_)),
      acks_(channel),
      step_begun_ns_(channel.NowNs()) {}

uint32_t TableExchange::num_servers() const {
  return static_cast<uint32_t>(channel_.view()->servers.size());
}

MakeBytes TableExchange::SectionMaker() {
  return [this](ServerId to, size_t size, std::span<std::byte>* bytes) {
    return channel_.MakeBytes(to, size, bytes);
  };
}

// ---- Pulls.

bool TableExchange::IsSameList(const AskedKeys& one, const AskedKeys& other) const {
  return one.keys.data() == other.keys.data() && one.keys.size() == other.keys.size() &&
         job_.tables[one.table.value].shard_by == job_.tables[other.table.value].shard_by;
}

std::unique_ptr<PulledList> TableExchange::FindKeys(std::span<const AskedKeys> asked, Clock clock,
                                                    std::vector<PulledRows>* pulled) {
  auto list = std::make_unique<PulledList>();
  list->tables.resize(asked.size());
  for (size_t i = 0; i < asked.size(); ++i) {
    const TableSpec& spec = job_.tables[asked[i].table.value];
    PulledRows& rows = pulled->emplace_back();
    KeySums& keys = list->tables[i];
    rows.table = keys.table = asked[i].table;
    rows.dim = spec.dim;
    rows.clock = clock;
    size_t same = 0;  // Tables that share a list share the work.
    while (same < i && !IsSameList(asked[same], asked[i])) ++same;
    if (same < i) {
      keys.distinct = list->tables[same].distinct;
    } else {
      const auto found = std::make_shared<DistinctKeys>();
      found->positions.resize(asked[i].keys.size());
      const KeyColumn column{asked[i].keys, found->positions.data()};
      unique_.Find({&column, 1}, spec.shard_by, job_.cluster.shards, executor_, &found->keys,
                   &found->shard_begin);
      keys.distinct = found;
    }
    rows.keys = keys.distinct->keys;
    rows.positions = keys.distinct->positions;
    rows.keeps_keys = keys.distinct;
  }
  std::ranges::sort(list->tables, {}, &KeySums::table);
  list->split.set_executor(executor_);
  list->split.Compute(channel_.view()->shards, num_servers(), ListsToSplit(job_, list->tables),
                      SectionMaker());
  return list;
}

TableExchange::PendingPull TableExchange::Send(PullPlan plan, std::vector<ServerRequest> requests) {
  PendingPull pull{std::nullopt, std::move(plan), channel_.NowNs()};
  if (!requests.empty()) pull.ticket = channel_.Start(std::move(requests));
  return pull;
}

Status TableExchange::AwaitReply(Ticket ticket) {
  while (!channel_.Ready(ticket)) {
    channel_.WaitForAnything();
    HDPS_RETURN_IF_ERROR(acks_.Collect(job_.cluster.pushes_in_flight_max));
  }
  return {};
}

Result<std::vector<PullReply>> TableExchange::Await(const PendingPull& pull) {
  std::vector<PullReply> replies(pull.plan.asked().size());
  if (!pull.ticket) return replies;
  HDPS_RETURN_IF_ERROR(AwaitReply(*pull.ticket));
  int64_t arrived_ns = pull.sent_ns;
  HDPS_ASSIGN_OR_RETURN(const std::vector<Frame> frames, channel_.Wait(*pull.ticket, &arrived_ns));
  channel_.meters()->Observe(FigureNamed("hdps_worker_pull_seconds"), arrived_ns - pull.sent_ns);
  for (size_t i = 0; i < frames.size(); ++i) {
    HDPS_RETURN_IF_ERROR(DecodeMessage(frames[i], &replies[i]));
    if (replies[i].code != Code::kOk) return Status(replies[i].code, replies[i].message);
  }
  return replies;
}

Status TableExchange::Place(const PendingPull& pull, const std::vector<PullReply>& replies,
                            const PulledList& list, std::vector<std::vector<float>>* rows) {
  rows->resize(list.tables.size());
  std::vector<std::span<float>> places;
  for (size_t t = 0; t < rows->size(); ++t) {
    (*rows)[t].resize(list.tables[t].keys().size() * job_.tables[list.tables[t].table.value].dim);
    places.emplace_back((*rows)[t]);
  }
  for (size_t i = 0; i < replies.size(); ++i) {
    HDPS_RETURN_IF_ERROR(pull.plan.Scatter(i, replies[i], places));
    copied_bytes_ += replies[i].rows.size();
  }
  return {};
}

Status TableExchange::Show(const PendingPull& pull, const std::vector<PullReply>& replies,
                           const PulledList& list, std::vector<std::vector<float>> rows,
                           std::vector<PulledRows>* pulled) {
  const size_t tables = list.tables.size();
  bool in_reply =
      rows_in_replies_ && rows.empty() && replies.size() == 1 && replies[0].format == DType::kFp32;
  for (size_t t = 0; t < tables; ++t) {
    in_reply = in_reply && (list.split.IsContiguous(t) || list.tables[t].keys().empty());
  }
  std::vector<RowSpans<const float>> shown(tables);
  std::shared_ptr<const void> keeps;
  if (in_reply) {
    const std::vector<std::span<float>> none(tables);
    HDPS_RETURN_IF_ERROR(pull.plan.Scatter(0, replies[0], none, shown));
    keeps = std::make_shared<Buffer>(replies[0].rows);
  } else {
    HDPS_RETURN_IF_ERROR(Place(pull, replies, list, &rows));
    const auto kept = std::make_shared<std::vector<std::vector<float>>>(std::move(rows));
    for (size_t t = 0; t < tables; ++t) shown[t] = std::span<const float>((*kept)[t]);
    keeps = kept;
  }
  for (size_t t = 0; t < tables; ++t) {
    PulledRows& of = *std::ranges::find(*pulled, list.tables[t].table, &PulledRows::table);
    if (!shown[t].empty()) of.rows = shown[t].piece(0);
    of.keeps_rows = keeps;
  }
  return {};
}

Result<std::vector<PulledRows>> TableExchange::Pull(std::span<const AskedKeys> asked, PullFor use,
                                                    Clock clock) {
  channel_.board().Enter("pull");
  const bool for_step = use == PullFor::kStep;
  std::vector<PulledRows> pulled;
  std::unique_ptr<PulledList> list;
  PendingPull pull;
  std::vector<std::vector<float>> rows;  // Those that were prefetched.
  const bool was_prefetched = for_step && IsPrefetched(asked);
  if (was_prefetched) {
    HDPS_ASSIGN_OR_RETURN(pull, Repair(clock));
    list = std::move(prefetched_->list);
    rows = std::move(prefetched_->rows);
    pulled = std::move(prefetched_->pulled);
    prefetched_.reset();
  } else {
    // At the gate of such a mode a server keeps one pull of a worker for a step.
    if (for_step && !sync_) CancelPrefetch();
    list = FindKeys(asked, clock, &pulled);
    if (for_step) list->number = next_list_++;
    PullPlan plan;
    std::vector<ServerRequest> requests =
        plan.Pull(list->split, {.clock = clock,
                                .mode = for_step ? PullMode::kTrain : PullMode::kRead,
                                .pushed = clock,
                                .list = list->number,
                                .format = for_step ? job_.parallel.wire : DType::kFp32});
    pull = Send(std::move(plan), std::move(requests));
  }
  HDPS_ASSIGN_OR_RETURN(const std::vector<PullReply> replies, Await(pull));
  HDPS_RETURN_IF_ERROR(Show(pull, replies, *list, std::move(rows), &pulled));
  // Outside of sync the rows stay as they were when they were asked for ahead.
  if (for_step && (sync_ || !was_prefetched)) CountStaleness(clock, replies, channel_.meters());
  if (for_step) {
    at_gate_ = at_gate_ || pull.ticket.has_value();
    for (PulledRows& of : pulled) of.pull = list->number;
    gradients_.Add(std::move(list));
  }
  channel_.board().Enter(ActivityBoard::kCompute);
  return pulled;
}

// ---- Rows that are asked for ahead.

void TableExchange::CancelPrefetch() {
  if (prefetched_ && prefetched_->pull.ticket) channel_.Cancel(*prefetched_->pull.ticket);
  prefetched_.reset();
}

void TableExchange::Prefetch(std::span<const AskedKeys> asked, Clock clock) {
  CancelPrefetch();
  Prefetched& ahead = prefetched_.emplace();
  for (const AskedKeys& one : asked) ahead.keys.emplace_back(one.keys.begin(), one.keys.end());
  ahead.list = FindKeys(asked, clock + 1, &ahead.pulled);
  ahead.list->number = next_list_++;
  PullPlan plan;
  std::vector<ServerRequest> requests =
      plan.Pull(ahead.list->split, {.clock = clock + 1,
                                    .mode = PullMode::kPrefetch,
                                    .pushed = clock,
                                    .list = ahead.list->number,
                                    .format = job_.parallel.wire});
  ahead.pull = Send(std::move(plan), std::move(requests));
}

bool TableExchange::IsPrefetched(std::span<const AskedKeys> asked) const {
  if (!prefetched_ || prefetched_->keys.size() != asked.size()) return false;
  for (size_t i = 0; i < asked.size(); ++i) {
    if (prefetched_->pulled[i].table != asked[i].table) return false;
    if (!std::ranges::equal(prefetched_->keys[i], asked[i].keys)) return false;
  }
  return true;
}

Result<TableExchange::PendingPull> TableExchange::Repair(Clock clock) {
  Prefetched& ahead = *prefetched_;
  HDPS_ASSIGN_OR_RETURN(const std::vector<PullReply> replies, Await(ahead.pull));
  std::vector<Clock> since(ahead.list->split.num_servers(), kNotRead);
  for (size_t i = 0; i < replies.size(); ++i) {
    since[ahead.pull.plan.asked()[i].server.value] = replies[i].min_clock;
  }
  if (!sync_) CountStaleness(clock, replies, channel_.meters());
  PullPlan plan;
  std::vector<ServerRequest> requests =
      plan.Repair(ahead.list->split, {.clock = clock,
                                      .pushed = clock,
                                      .list = ahead.list->number,
                                      .since = since,
                                      .changes = sync_,
                                      .format = job_.parallel.wire});
  PendingPull repair = Send(std::move(plan), std::move(requests));
  // The rows are put in place while the servers look for what has changed since.
  HDPS_RETURN_IF_ERROR(Place(ahead.pull, replies, *ahead.list, &ahead.rows));
  return repair;
}

// ---- Pushes.

void TableExchange::Scale(std::span<KeySums> tables, uint64_t examples) const {
  if (examples != 1) gradients_.Scale(tables, static_cast<float>(examples));
  if (job_.train.clip_norm == 0 || clips_all_) return;
  // Such sums are never written into a push before this.
  std::vector<std::vector<float>> by_table(job_.tables.size());
  for (KeySums& table : tables) by_table[table.table.value].swap(table.own);
  ClipOwnNorm(job_, examples, {}, {by_table, {}});
  for (KeySums& table : tables) by_table[table.table.value].swap(table.own);
}

void TableExchange::Send(const PushedStep& step, PushPlan push, std::span<KeySums> tables,
                         uint64_t list) {
  Scale(tables, step.examples);
  std::vector<std::span<const float>> gradients;
  for (const KeySums& table : tables) {
    gradients.emplace_back(table.own);  // Ignored for sums that lie in the push.
    copied_bytes_ += table.own.size() * sizeof(float);
  }
  std::vector<ServerRequest> requests = push.Requests({.sequence = {next_sequence_++},
                                                       .clock = step.clock,
                                                       .num_examples = step.examples,
                                                       .list = list,
                                                       .format = job_.parallel.wire,
                                                       .rate = step.rate,
                                                       .epoch = step.epoch,
                                                       .steps_before = step.steps_before,
                                                       .loss_scale = job_.train.loss_scale},
                                                      gradients);
  // Under clip_norm the clock is announced together with the norm.
  std::vector<ServerRequest> finished;
  if (!clips_all_) finished = AdvanceRequests(num_servers(), step.clock + 1);
  acks_.Add(channel_.Start(std::move(requests), std::move(finished)), step.examples);
}

Status TableExchange::Push(const PushedStep& step) {
  channel_.board().Enter("push");
  if (!at_gate_ && job_.train.mode != Mode::kAsync) {
    // Without rows to wait for, this worker would run ahead of the others.
    if (!sync_) CancelPrefetch();
    const Ticket asked = gate_.AskAtGate(step.clock, step.clock);
    HDPS_RETURN_IF_ERROR(AwaitReply(asked));
    HDPS_RETURN_IF_ERROR(channel_.Wait(asked).status());
  }
  if (PulledList* list = gradients_.AsPulled(); list != nullptr) {
    PushPlan push = list->push ? *std::move(list->push) : PushPlan(list->split, SectionMaker());
    Send(step, std::move(push), list->tables, list->number);
  } else {
    if (job_.train.delay_compensation > 0 && job_.train.mode != Mode::kSync) {
      LOG_FIRST_N(WARNING, 1) << "train.delay_compensation changes nothing: this program pulls "
                                 "rows more than once in a step";
    }
    std::vector<KeySums> joined = gradients_.Joined();
    joined_split_.set_executor(executor_);
    joined_split_.Compute(channel_.view()->shards, num_servers(), ListsToSplit(job_, joined),
                          SectionMaker());
    for (const std::unique_ptr<PulledList>& one : gradients_.lists()) {
      joined_split_.NoteOldestMarks(one->split);
    }
    Send(step, PushPlan(joined_split_, SectionMaker()), joined, 0);
  }
  const int64_t now = channel_.NowNs();
  Meters& meters = *channel_.meters();
  meters.Observe(FigureNamed("hdps_worker_step_seconds"), now - std::exchange(step_begun_ns_, now));
  meters.Add(FigureNamed("hdps_worker_examples_total"), step.examples);
  gradients_.Clear();
  at_gate_ = false;
  if (prefetched_ && prefetched_->pulled.front().clock <= step.clock) CancelPrefetch();
  if (clips_all_) {
    const Ticket asked = channel_.Start(SquaresRequests(num_servers(), step.clock));
    HDPS_RETURN_IF_ERROR(acks_.Collect(0));
    HDPS_RETURN_IF_ERROR(AnnounceNorm(step.clock, asked));
  }
  HDPS_RETURN_IF_ERROR(acks_.Collect(job_.cluster.pushes_in_flight_max - 1));
  channel_.board().Enter(ActivityBoard::kCompute);
  return {};
}

Status TableExchange::AnnounceNorm(Clock clock, Ticket asked) {
  HDPS_ASSIGN_OR_RETURN(const SquareSum squares, AwaitSquares(channel_, asked));
  HDPS_RETURN_IF_ERROR(AwaitAdvance());
  advance_ = channel_.Start(AdvanceRequests(num_servers(), clock + 1, squares));
  return {};
}

Status TableExchange::AwaitAdvance() {
  if (!advance_) return {};
  return channel_.Wait(*std::exchange(advance_, std::nullopt)).status();
}

Status TableExchange::Settle() {
  channel_.board().Enter("push");
  HDPS_RETURN_IF_ERROR(acks_.Collect(0));
  return AwaitAdvance();
}

// ---- Steps without examples.

Result<Ticket> TableExchange::BeginEmptyStep(const PushedStep& step) {
  CancelPrefetch();
  gradients_.Clear();
  at_gate_ = false;
  joined_split_.Compute(channel_.view()->shards, num_servers(), {});
  Send(step, PushPlan(joined_split_, SectionMaker()), {}, 0);
  HDPS_RETURN_IF_ERROR(acks_.Collect(job_.cluster.pushes_in_flight_max - 1));
  // Servers answer when every worker has pushed this step.
  if (clips_all_) return channel_.Start(SquaresRequests(num_servers(), step.clock));
  const Clock bound = sync_ ? 0 : job_.train.staleness_bound;
  return gate_.AskAtGate(step.clock + 1 + bound, step.clock + 1);
}

Status TableExchange::EndEmptyStep(Clock clock, Ticket awaited) {
  return clips_all_ ? AnnounceNorm(clock, awaited) : channel_.Wait(awaited).status();
}

void TableExchange::Announce(Clock clock) { channel_.Start(AdvanceRequests(num_servers(), clock)); }

void TableExchange::Reset() {
  CancelPrefetch();
  gradients_.Clear();
  acks_.Forget();
  advance_.reset();
  at_gate_ = false;
}

}  // namespace hdps
