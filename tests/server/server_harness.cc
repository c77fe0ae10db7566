// What a scripted worker or scheduler sends, and how the server's answers are found.
#include "tests/server/server_harness.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "common/base/bounded_queue.h"
#include "common/base/buffer.h"
#include "common/base/shard_map.h"
#include "common/job/optimizers/optimizer_record.h"
#include "common/job/optimizers/optimizers.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/init_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/protocol/command_messages.h"
#include "common/protocol/membership_messages.h"
#include "common/protocol/row_messages.h"
#include "gtest/gtest.h"

namespace hdps {
namespace {

// As a worker would cut them for a server that owns `shards`.
struct RowSections {
  std::vector<TableKeys> tables;
  std::vector<Key> keys;
  std::vector<float> floats;
};
RowSections CutForServer(const Job& job, const std::vector<ShardId>& shards,
                         const std::vector<TableRows>& rows) {
  RowSections sections;
  for (const TableRows& part : rows) {
    TableKeys& table = sections.tables.emplace_back();
    table.table = {part.table};
    table.row_floats = part.row_floats;
    for (const ShardId shard : shards) {
      uint32_t count = 0;
      for (size_t k = 0; k < part.keys.size(); ++k) {
        const ShardBy by = job.tables[part.table].shard_by;
        if (ShardOf(part.keys[k], by, job.cluster.shards) != shard) continue;
        sections.keys.push_back(part.keys[k]);
        ++count;
        if (part.floats.empty()) continue;
        const auto row = part.floats.begin() + static_cast<ptrdiff_t>(k * part.row_floats);
        sections.floats.insert(sections.floats.end(), row, row + part.row_floats);
      }
      table.shard_counts.push_back(count);
      table.num_keys += count;
    }
  }
  return sections;
}

}  // namespace

TableSpec TableOf(const std::string& name, uint32_t dim, OptimizerKind kind) {
  TableSpec table;
  table.name = name;
  table.dim = dim;
  table.optimizer.record = &RecordOf(kind);
  table.optimizer.learning_rate = 1;
  table.init.kind = InitKind::kZeros;
  return table;
}

Job TestJob(Mode mode) {
  Job job;
  job.train.mode = mode;
  job.cluster.shards = 8;
  job.parallel.gradients_mean = true;
  job.tables = {TableOf("wide", 1, OptimizerKind::kSgd), TableOf("deep", 2, OptimizerKind::kSgd)};
  return job;
}

ServerHarness::ServerHarness(const ServerSetting& setting, FileSystem* files, Executor* executor)
    : job_(std::make_shared<const Job>(setting.job)),
      self_{100 + setting.rank},
      group_{static_cast<uint16_t>(setting.rank)},
      executor_(executor != nullptr ? *executor : *own_executor_) {
  ServerNodeOptions options;
  options.job = job_;
  options.identity.self = self_;
  options.identity.scheduler_address = "inproc://scheduler";
  options.identity.own_address = "inproc://server";
  options.sabotage = setting.sabotage;
  options.guests_read = setting.guests_read;
  options.clock = setting.clock;
  options.file_writes = setting.file_writes;
  options.wake = [this] { ++wakes_; };
  node_ = std::make_unique<ServerNode>(files != nullptr ? *files : *own_files_, executor_, options);
  for (uint32_t s = 0; s < setting.servers; ++s) {
    view_.servers.push_back({{100 + s}, s, "inproc://" + std::to_string(s)});
  }
  for (uint32_t w = 0; w < setting.workers; ++w) view_.workers.push_back({WorkerPeer(w), w, ""});
  for (uint32_t s = 0; s < job_->cluster.shards; ++s) {
    view_.shards.owner.push_back({s % setting.servers});
  }
  view_.view = {1};
  shards_ = view_.shards.ShardsOf({setting.rank});
  SendView();
  view_.view = {3};
  SendView();
}

void ServerHarness::SendView() {
  FromPeer(kSchedulerPeer, view_, 0);
  Tick();
}

void ServerHarness::Tick() {
  node_->OnTick(now_ += 20);
  Collect();
}

void ServerHarness::FromPeer(PeerId from, Frame frame) {
  frame.header.group = group_;
  node_->OnFrame(from, std::move(frame));
  Collect();
}

uint64_t ServerHarness::Push(uint32_t worker, uint64_t sequence, Clock clock, uint64_t examples,
                             const std::vector<TableRows>& rows) {
  FromPeer(WorkerPeer(worker), PushOf(sequence, clock, examples, rows), ++request_id_);
  return request_id_;
}

PushRequest ServerHarness::PushOf(uint64_t sequence, Clock clock, uint64_t examples,
                                  const std::vector<TableRows>& rows) const {
  RowSections sections = CutForServer(*job_, shards_, rows);
  PushRequest push;
  push.sequence = {sequence};
  push.clock = clock;
  push.num_examples = examples;
  push.tables = std::move(sections.tables);
  push.keys = Buffer::CopyOf<Key>(sections.keys);
  push.gradients = Buffer::CopyOf<float>(sections.floats);
  return push;
}

uint64_t ServerHarness::Pull(uint32_t worker, Clock clock, PullMode mode,
                             const std::vector<TableRows>& rows) {
  FromPeer(WorkerPeer(worker), PullOf(clock, mode, rows), ++request_id_);
  return request_id_;
}

PullRequest ServerHarness::PullOf(Clock clock, PullMode mode,
                                  const std::vector<TableRows>& rows) const {
  RowSections sections = CutForServer(*job_, shards_, rows);
  PullRequest pull;
  pull.clock = clock;
  pull.mode = mode;
  pull.tables = std::move(sections.tables);
  pull.keys = Buffer::CopyOf<Key>(sections.keys);
  return pull;
}

StoreRequest ServerHarness::StoreOf(uint64_t sequence, Clock clock,
                                    const std::vector<TableRows>& rows) const {
  RowSections sections = CutForServer(*job_, shards_, rows);
  StoreRequest store;
  store.sequence = {sequence};
  store.clock = clock;
  store.tables = std::move(sections.tables);
  store.keys = Buffer::CopyOf<Key>(sections.keys);
  store.rows = Buffer::CopyOf<float>(sections.floats);
  return store;
}

uint64_t ServerHarness::Advance(uint32_t worker, Clock clock) {
  AdvanceRequest advance;
  advance.clock = clock;
  FromPeer(WorkerPeer(worker), advance, ++request_id_);
  return request_id_;
}

PushAck ServerHarness::Ack(uint64_t request_id) {
  std::optional<PushAck> ack = TakeReply<PushAck>(request_id);
  EXPECT_TRUE(ack.has_value()) << "no answer to the push";
  return ack.value_or(PushAck());
}

std::vector<float> ServerHarness::Read(uint32_t table, const std::vector<Key>& keys) {
  const uint32_t dim = job_->tables[table].dim;
  const uint64_t id = Pull(0, 0, PullMode::kRead, {{table, dim, keys, {}}});
  std::optional<PullReply> reply = TakeReply<PullReply>(id);
  EXPECT_TRUE(reply.has_value() && reply->code == Code::kOk);
  if (!reply) return {};
  // Back from the order of the shards to that of `keys`.
  const std::vector<Key> order = CutForServer(*job_, shards_, {{table, dim, keys, {}}}).keys;
  const std::span<const float> rows = reply->rows.As<float>();
  std::vector<float> result;
  for (const Key key : keys) {
    const auto at = std::find(order.begin(), order.end(), key) - order.begin();
    const auto row = rows.begin() + at * dim;
    result.insert(result.end(), row, row + dim);
  }
  return result;
}

CommandDone ServerHarness::Run(CommandKind kind, const std::string& path, Clock until,
                               Clock since) {
  Command command;
  command.command = kind;
  command.path = path;
  command.until = until;
  command.since = since;
  const CommandId id = Send(command);
  // The background works in order: when this has run, so has the command.
  BoundedQueue<bool> behind(1);
  executor_.Submit([&behind] { behind.Push(true); });
  behind.Pop();
  for (int tick = 0; tick < 2; ++tick) {
    if (std::optional<CommandDone> done = TakeAnswer(id)) return *std::move(done);
    Tick();
  }
  ADD_FAILURE() << "command not answered";
  return {};
}

CommandId ServerHarness::Send(Command command) {
  command.id = {++command_id_};
  FromPeer(kSchedulerPeer, command, 0);
  return command.id;
}

std::optional<CommandDone> ServerHarness::TakeAnswer(CommandId id) {
  for (auto at = replies_.begin(); at != replies_.end(); ++at) {
    CommandDone done;
    if (at->to != kSchedulerPeer ||
        at->frame.header.kind != static_cast<uint16_t>(CommandDone::kKind) ||
        !DecodeMessage(at->frame, &done).ok() || done.id != id) {
      continue;
    }
    replies_.erase(at);
    return done;
  }
  return std::nullopt;
}

uint64_t ServerHarness::Digest() { return Run(CommandKind::kDigest).digest[0]; }

size_t ServerHarness::TakeHeartbeats() {
  return std::erase_if(replies_, [](const Outgoing& reply) {
    return reply.to == kSchedulerPeer &&
           reply.frame.header.kind == static_cast<uint16_t>(Heartbeat::kKind);
  });
}

void ServerHarness::Collect() {
  Output output = node_->TakeOutput();
  for (Outgoing& outgoing : output.frames) replies_.push_back(std::move(outgoing));
}

}  // namespace hdps
