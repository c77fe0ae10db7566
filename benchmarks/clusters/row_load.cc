// Draws keys, and runs the worker's side of the exchange.
#include "benchmarks/clusters/row_load.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/hash.h"
#include "common/job/job_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/platform/random.h"
#include "common/protocol/message_frames.h"
#include "common/protocol/view.h"
#include "kernels/keys/key_shards.h"
#include "tools/synthetic/zipf.h"
#include "worker/exchange/push_plan.h"

namespace hdps {
namespace {

// Shuffles the keys, so that a table cannot profit from their order.
void MakeDistinct(std::vector<Key>* keys) {
  for (Key& key : *keys) key = MixBits(key);
  std::sort(keys->begin(), keys->end());
  keys->erase(std::unique(keys->begin(), keys->end()), keys->end());
}

}  // namespace

void FillLines(std::span<float> values, float value) {
  constexpr size_t kBlock = 1024;
  const std::vector<float> block(kBlock, value);
  for (size_t i = 0; i < values.size(); i += kBlock) {
    std::copy_n(block.data(), std::min(kBlock, values.size() - i), values.data() + i);
  }
}

KeyBatches ZipfLists(uint64_t rows, double exponent, size_t draws, size_t lists, uint64_t seed) {
  const Zipf zipf(rows, exponent);
  Random random(seed);
  KeyBatches made(lists);
  for (auto& [keys, shard_begin] : made) {
    for (size_t i = 0; i < draws; ++i) keys.push_back(zipf.Draw(random));
    MakeDistinct(&keys);
  }
  return made;
}

KeyBatches LogUniformLists(size_t batch, size_t lists, uint64_t seed) {
  constexpr uint64_t kFields = 26;
  constexpr double kIds = 1e6;
  Random random(seed);
  KeyBatches made(lists);
  for (auto& [keys, shard_begin] : made) {
    for (size_t i = 0; i < batch; ++i) {
      for (uint64_t field = 0; field < kFields; ++field) {
        const auto id = static_cast<uint64_t>(std::exp(random.Unit() * std::log(kIds)));
        keys.push_back(field << 32 | id);
      }
    }
    MakeDistinct(&keys);
  }
  return made;
}

KeyBatches AllKeys(uint64_t rows) {
  constexpr uint64_t kListKeys = 1 << 16;
  KeyBatches made;
  for (uint64_t row = 0; row < rows; ++row) {
    if (row % kListKeys == 0) made.emplace_back();
    made.back().keys.push_back(MixBits(row));
  }
  return made;
}

KeyBatches ByShard(KeyBatches lists, uint32_t num_shards) {
  for (auto& [keys, shard_begin] : lists) {
    const std::vector<Key> found = std::exchange(keys, {});
    std::vector<uint32_t> places(found.size());
    keys.resize(found.size());
    shard_begin.resize(num_shards + 1);
    OrderByShard(WidestVectors(), found, ShardBy::kKey, num_shards, nullptr, places.data(),
                 keys.data(), shard_begin.data());
  }
  return lists;
}

KeysOfTable StepKeys::OfTable(TableId table, uint32_t row_floats) const {
  KeysOfTable of_table;
  of_table.table = table;
  of_table.row_floats = row_floats;
  of_table.keys = keys;
  of_table.shard_begin = shard_begin;
  return of_table;
}

size_t CountKeys(const KeyBatches& lists) {
  size_t keys = 0;
  for (const StepKeys& list : lists) keys += list.keys.size();
  return keys;
}

std::string RowsJob(uint32_t dim, const std::string& rule, const std::string& mode) {
  return R"({"name": "rows", "data": {"format": "criteo", "train": ["none.tsv"]},
    "model": {"type": "wide_deep", "embedding_dim": )" +
         std::to_string(dim) + R"(, "hidden": [8], "deep_optimizer": {"kind": ")" + rule +
         R"("}}, "cluster": {"join_tables": false}, "train": {"mode": ")" + mode + R"("}})";
}

TableId RowsTable(const Job& job) {
  uint32_t widest = 0;
  for (uint32_t t = 0; t < job.tables.size(); ++t) {
    if (!job.tables[t].dense && job.tables[t].dim > job.tables[widest].dim) widest = t;
  }
  return {widest};
}

Result<std::unique_ptr<RowWorker>> RowWorker::Make(RowCluster& cluster, uint32_t worker) {
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<RowClient> client, RowClient::Make(cluster, worker));
  return std::unique_ptr<RowWorker>(new RowWorker(cluster, std::move(client)));
}

RowWorker::RowWorker(RowCluster& cluster, std::unique_ptr<RowClient> client)
    : cluster_(cluster),
      client_(std::move(client)),
      table_(RowsTable(cluster.job())),
      dim_(cluster.job().tables[table_.value].dim),
      sync_(cluster.job().train.mode == Mode::kSync) {}

Buffer RowWorker::MakeSectionFor(ServerId to, size_t size, std::span<std::byte>* bytes) {
  return MakeSection(client_->sections(), cluster_.view()->servers[to.value].peer, size, bytes);
}

void RowWorker::Split(const StepKeys& list, Flight* flight) {
  const KeysOfTable table = list.OfTable(table_, dim_);
  const View& view = *cluster_.view();
  const auto make = [this](ServerId to, size_t size, std::span<std::byte>* bytes) {
    return MakeSectionFor(to, size, bytes);
  };
  flight->split.Compute(view.shards, static_cast<uint32_t>(view.servers.size()), {&table, 1}, make);
}

void RowWorker::StartPull(const StepKeys& list, Flight* flight) {
  Split(list, flight);
  flight->rows.resize(flight->split.IsContiguous(0) ? 0 : list.keys.size() * dim_);
  flight->held.clear();
  flight->ticket = client_->Start(flight->pull.Pull(flight->split, {0, PullMode::kTrain}));
}

Status RowWorker::FinishPull(Flight* flight) {
  HDPS_ASSIGN_OR_RETURN(const std::vector<Frame> replies, client_->Wait(flight->ticket));
  const std::span<float> rows = flight->rows;
  RowSpans<const float> in_place;
  for (size_t i = 0; i < replies.size(); ++i) {
    PullReply reply;
    HDPS_RETURN_IF_ERROR(DecodeMessage(replies[i], &reply));
    HDPS_RETURN_IF_ERROR(flight->pull.Scatter(i, reply, {&rows, 1}, {&in_place, 1}));
    if (!in_place.empty()) flight->held.push_back(reply.rows);
  }
  if (!reads_rows_) return Status();
  constexpr size_t kLineBytes = 64;
  const auto read = [this](std::span<const std::byte> bytes) {
    for (size_t i = 0; i < bytes.size(); i += kLineBytes) {
      seen_ |= std::to_integer<uint32_t>(bytes[i]);
    }
  };
  for (const Buffer& section : flight->held) read(section.bytes());
  read(std::as_bytes(rows));
  return Status();
}

void RowWorker::StartPush(const StepKeys& list, Flight* flight) {
  constexpr uint64_t kExamples = 4096;
  constexpr float kGradient = 0.001f;
  Split(list, flight);
  PushPlan plan(flight->split, [this](ServerId to, size_t size, std::span<std::byte>* bytes) {
    return MakeSectionFor(to, size, bytes);
  });
  const Clock clock = sync_ ? static_cast<Clock>(next_sequence_) : 0;  // Each step is one push.
  const PushTerms terms = {
      .sequence = {next_sequence_++}, .clock = clock, .num_examples = kExamples};
  if (flight->split.IsContiguous(0)) {  // Made where they are sent from, as a worker's model does.
    plan.Open();
    const RowSpans<float> place = plan.place(0);
    for (size_t p = 0; p < place.count(); ++p) FillLines(place.piece(p), kGradient);
    const std::span<const float> in_place;
    flight->ticket = client_->Start(plan.Requests(terms, {&in_place, 1}));
    return;
  }
  const size_t floats = list.keys.size() * dim_;
  gradients_.resize(floats, kGradient);
  const std::span<const float> gradients(gradients_.data(), floats);
  flight->ticket = client_->Start(plan.Requests(terms, {&gradients, 1}));
}

Status RowWorker::FinishPush(Flight* flight) {
  HDPS_ASSIGN_OR_RETURN(const std::vector<Frame> replies, client_->Wait(flight->ticket));
  for (const Frame& reply : replies) {
    PushAck ack;
    HDPS_RETURN_IF_ERROR(DecodeMessage(reply, &ack));
    if (ack.code != Code::kOk) return Status(ack.code, ack.message);
  }
  return Status();
}

Status RowWorker::PullAll(const KeyBatches& lists, size_t window, size_t passes) {
  flights_.resize(std::max(flights_.size(), window));
  const size_t count = passes * lists.size();
  for (size_t i = 0; i < count + window; ++i) {
    Flight* const flight = &flights_[i % window];
    if (i >= window && i - window < count) HDPS_RETURN_IF_ERROR(FinishPull(flight));
    if (i < count) StartPull(lists[i % lists.size()], flight);
  }
  return Status();
}

Status RowWorker::PushAll(const KeyBatches& lists, size_t window, size_t passes) {
  flights_.resize(std::max(flights_.size(), window));
  const size_t count = passes * lists.size();
  for (size_t i = 0; i < count + window; ++i) {
    Flight* const flight = &flights_[i % window];
    if (i >= window && i - window < count) HDPS_RETURN_IF_ERROR(FinishPush(flight));
    if (i < count) StartPush(lists[i % lists.size()], flight);
  }
  return Status();
}

Status RowWorker::PullAhead(const StepKeys& list) {
  Split(list, &ahead_);
  ahead_.rows.resize(list.keys.size() * dim_);
  PullTerms terms;
  terms.mode = PullMode::kPrefetch;
  terms.list = next_list_++;
  HDPS_ASSIGN_OR_RETURN(const std::vector<Frame> replies,
                        client_->Call(ahead_.pull.Pull(ahead_.split, terms)));
  ahead_replies_.assign(replies.size(), PullReply());
  for (size_t i = 0; i < replies.size(); ++i) {
    HDPS_RETURN_IF_ERROR(DecodeMessage(replies[i], &ahead_replies_[i]));
    if (ahead_replies_[i].code != Code::kOk) return Status(ahead_replies_[i].code, "pull ahead");
  }
  return Status();
}

Status RowWorker::Repair(Changes changes) {
  const Clock now = sync_ ? static_cast<Clock>(next_sequence_) : 0;
  const std::span<float> rows = ahead_.rows;
  std::vector<Clock> since(ahead_.split.num_servers(), kNotRead);
  const std::vector<PullPlan::Asked>& asked = ahead_.pull.asked();
  for (size_t i = 0; i < asked.size(); ++i) {
    since[asked[i].server.value] = changes == Changes::kAll ? ahead_replies_[i].min_clock : now;
  }
  PullPlan repair;
  const Ticket ticket = client_->Start(
      repair.Repair(ahead_.split, {now, now, next_list_ - 1, since, /*changes=*/true}));
  for (size_t i = 0; i < asked.size(); ++i) {
    HDPS_RETURN_IF_ERROR(ahead_.pull.Scatter(i, ahead_replies_[i], {&rows, 1}));
  }
  HDPS_ASSIGN_OR_RETURN(const std::vector<Frame> replies, client_->Wait(ticket));
  for (size_t i = 0; i < replies.size(); ++i) {
    PullReply reply;
    HDPS_RETURN_IF_ERROR(DecodeMessage(replies[i], &reply));
    HDPS_RETURN_IF_ERROR(repair.Scatter(i, reply, {&rows, 1}));
  }
  return Status();
}

Status RowWorker::PullNothing(size_t count) {
  std::vector<Ticket> tickets;
  for (size_t i = 0; i < count; ++i) {
    std::vector<ServerRequest> requests;
    requests.push_back({{0}, EncodeMessage(PullRequest())});
    tickets.push_back(client_->Start(std::move(requests)));
  }
  for (const Ticket ticket : tickets) HDPS_RETURN_IF_ERROR(client_->Wait(ticket).status());
  return Status();
}

}  // namespace hdps
