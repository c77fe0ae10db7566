// Asks the scheduler for the servers, and the servers for rows.
#include "tools/tables/running_rows.h"

#include <algorithm>
#include <utility>

#include "common/job/job_facts.h"
#include "common/job/job_file.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/table_slices.h"
#include "common/protocol/row_messages.h"
#include "common/protocol/status_messages.h"
#include "worker/exchange/key_split.h"
#include "worker/exchange/pull_plan.h"

namespace hdps {
namespace {

constexpr uint32_t kPatienceS = 10;
constexpr int64_t kPatienceMs = int64_t{1000} * kPatienceS;
constexpr int64_t kTickMs = 20;
constexpr int64_t kAskPlacesEveryMs = 500;  // While servers do not answer.

PsClientOptions ClientOptions(PeerId self) {
  PsClientOptions options;
  options.self = self;
  options.request_retry_ms = 500;
  options.request_timeout_s = kPatienceS;
  return options;
}

TransportOptions ConnectionOptions(const SchedulerConnection& scheduler, const PeerName& self) {
  TransportOptions options = scheduler.connections().Options(self);
  options.shared_bytes_per_peer = 0;  // No rows are sent.
  return options;
}

}  // namespace

RunningRows::RunningRows(SchedulerConnection& scheduler, const PeerName& self)
    : scheduler_(scheduler),
      clock_(NewSystemClock()),
      transport_(NewZmqTransport(ConnectionOptions(scheduler, self))),
      client_(ClientOptions(self.peer)) {}

Result<std::unique_ptr<RunningRows>> RunningRows::Open(SchedulerConnection& scheduler) {
  std::unique_ptr<RunningRows> rows(new RunningRows(scheduler, NewPeerName()));
  HDPS_RETURN_IF_ERROR(rows->AskPlaces());
  return rows;
}

Status RunningRows::AskPlaces() {
  HDPS_ASSIGN_OR_RETURN(RowPlacesReply reply,
                        scheduler_.Ask<RowPlacesReply>(RowPlacesRequest(), kPatienceMs));
  if (reply.code != Code::kOk) return Status(reply.code, reply.message);
  if (view_ == nullptr) {
    HDPS_ASSIGN_OR_RETURN(const JobReply told, scheduler_.Ask<JobReply>(JobRequest(), kPatienceMs));
    if (told.code != Code::kOk) return Status(told.code, told.message);
    const std::span<const char> text = told.text.As<char>();
    HDPS_ASSIGN_OR_RETURN(job_, ParseJob(std::string(text.begin(), text.end()),
                                         "the job at " + scheduler_.address(), {}));
    if (reply.shards.num_shards() != job_.cluster.shards) {
      return Status(Code::kCorruption, "the scheduler tells another number of shards than its job");
    }
  } else if (reply.view == view_->view) {
    return {};
  }
  auto view = std::make_shared<View>();
  view->view = reply.view;
  view->servers = std::move(reply.servers);
  view->shards = std::move(reply.shards);
  for (const Member& server : view->servers) {
    HDPS_RETURN_IF_ERROR(transport_->Connect(server.peer, server.address));
  }
  view_ = std::move(view);
  client_.OnView(view_);
  return {};
}

Result<std::vector<uint32_t>> RunningRows::ShardsOf(
    TableId table, std::span<const Key> keys, const std::optional<std::string>& feature) const {
  const TableSpec& spec = job_.tables[table.value];
  std::vector<uint32_t> shards;
  if (const uint32_t slices = spec.row_slices(); slices > 1) {
    for (const Key key : keys) {
      for (uint32_t slice = 0; slice < slices; ++slice) {
        shards.push_back(ColumnShard(key, slice, slices, job_.cluster.shards));
      }
    }
    return shards;
  }
  if (spec.slice_mode != SliceMode::kField) return shards;
  const std::vector<uint32_t> features = FeaturesOfTable(job_, spec.name);
  const std::vector<std::string> names = FeaturesOf(job_.data).sparse;
  const std::vector<uint32_t> of_features = FieldShards(job_, spec, features);
  for (size_t f = 0; f < features.size(); ++f) {
    const bool only = std::ranges::count(of_features, of_features[f]) ==
                      static_cast<std::ptrdiff_t>(of_features.size());
    if (only || names[features[f]] == feature) {
      return std::vector<uint32_t>(keys.size(), of_features[f]);
    }
  }
  return Status(Code::kInvalidArgument,
                "table \"" + spec.name +
                    "\" is cut by feature (field_slice), so a key alone does not tell its server; "
                    "give feature and values");
}

Result<std::vector<float>> RunningRows::Read(TableId table, std::span<const Key> keys,
                                             const std::optional<std::string>& feature) {
  const TableSpec& spec = job_.tables[table.value];
  if (spec.vocab_cache_size > 0) {
    return Status(Code::kInvalidArgument,
                  "the workers keep the rows of table \"" + spec.name +
                      "\" that are seen most (vocab_cache_size), so its servers do not have them "
                      "as they are; open a checkpoint of the job instead");
  }
  HDPS_ASSIGN_OR_RETURN(const std::vector<uint32_t> shards, ShardsOf(table, keys, feature));
  const size_t slices = spec.row_slices(), at_once = kGuestKeysMax / slices;
  std::vector<float> rows(keys.size() * spec.dim);
  std::vector<Key> sliced;
  for (size_t begin = 0; begin < keys.size(); begin += at_once) {
    const size_t count = std::min(at_once, keys.size() - begin);
    sliced.clear();
    for (const Key key : keys.subspan(begin, count)) sliced.insert(sliced.end(), slices, key);
    KeysOfTable some{table, spec.shard_by, spec.slice_dim(), sliced};
    if (!shards.empty()) {
      some.shard_of_key = std::span(shards).subspan(begin * slices, sliced.size());
    }
    HDPS_RETURN_IF_ERROR(
        ReadSome(some, std::span(rows).subspan(begin * spec.dim, count * spec.dim)));
  }
  return rows;
}

Status RunningRows::ReadSome(const KeysOfTable& keys, std::span<float> rows) {
  const int64_t until = clock_->NowMs() + kPatienceMs;
  while (true) {
    const Ticket ticket{++last_ticket_};
    KeySplit split;
    split.Compute(view_->shards, static_cast<uint32_t>(view_->servers.size()), {&keys, 1});
    PullPlan plan;
    client_.OnTick(clock_->NowMs());
    client_.Start(ticket, plan.Pull(split, {.mode = PullMode::kRead}));
    HDPS_ASSIGN_OR_RETURN(const std::optional<std::vector<Frame>> replies, Await(ticket));
    if (!replies) {
      if (clock_->NowMs() < until) continue;
      return Status(Code::kUnavailable, "the members of the job change all the time");
    }
    for (size_t i = 0; i < replies->size(); ++i) {
      PullReply reply;
      HDPS_RETURN_IF_ERROR(DecodeMessage((*replies)[i], &reply));
      HDPS_RETURN_IF_ERROR(plan.Scatter(i, reply, std::vector{rows}));
    }
    return {};
  }
}

Result<std::optional<std::vector<Frame>>> RunningRows::Await(Ticket ticket) {
  const std::shared_ptr<const View> view = view_;
  int64_t ask_at = clock_->NowMs() + kAskPlacesEveryMs;
  while (true) {
    const int64_t now = clock_->NowMs();
    client_.OnTick(now);
    for (Outgoing& out : client_.TakeOutgoing()) transport_->Send(out.to, std::move(out.frame));
    for (TicketResult& result : client_.TakeResults()) {
      if (result.ticket != ticket) continue;
      HDPS_RETURN_IF_ERROR(result.status);
      return std::optional(std::move(result.replies));
    }
    if (now >= ask_at) {
      const Status asked = AskPlaces();
      if (!asked.ok() || view_ != view) client_.Cancel(ticket);
      HDPS_RETURN_IF_ERROR(asked);
      if (view_ != view) return std::optional<std::vector<Frame>>();
      ask_at = clock_->NowMs() + kAskPlacesEveryMs;
    }
    PeerId from;
    Frame frame;
    if (transport_->Receive(kTickMs, &from, &frame)) client_.OnFrame(from, frame);
  }
}

}  // namespace hdps
