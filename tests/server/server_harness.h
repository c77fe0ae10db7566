// Harness for a server: scripted scheduler and workers, frame by frame.
#pragma once

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/bounded_queue.h"
#include "common/base/shard_map.h"
#include "common/job/job_spec.h"
#include "common/job/optimizers/optimizer_record.h"
#include "common/job/optimizers/optimizers.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/init_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "common/protocol/command_messages.h"
#include "common/protocol/membership_messages.h"
#include "common/protocol/message_frames.h"
#include "common/protocol/row_messages.h"
#include "common/protocol/view.h"
#include "gtest/gtest.h"
#include "server/server_node.h"

namespace hdps {

enum class Mode : uint8_t;

// Keeps background work until the test runs it.
class LaterExecutor : public Executor {
 public:
  void ParallelFor(size_t count, const std::function<void(size_t)>& body) override {
    for (size_t i = 0; i < count; ++i) body(i);
  }
  void Submit(std::function<void()> work) override { waiting_.push_back(std::move(work)); }
  int threads() const override { return 1; }
  size_t RunAll() {
    size_t ran = 0;
    for (; !waiting_.empty(); ++ran) {
      const std::function<void()> work = std::move(waiting_.front());
      waiting_.pop_front();
      work();
    }
    return ran;
  }

 private:
  std::deque<std::function<void()>> waiting_;
};

// The keys of one request in one table, and their values.
struct TableRows {
  uint32_t table = 0;
  uint32_t row_floats = 1;
  std::vector<Key> keys;
  std::vector<float> floats;  // [keys, row_floats]; empty for a pull.
};

// Sections of a request, cut as a worker would for a server that owns `shards`.
struct RowSections {
  std::vector<TableKeys> tables;
  std::vector<Key> keys;
  std::vector<float> floats;
};
inline RowSections CutForServer(const Job& job, const std::vector<ShardId>& shards,
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

inline TableSpec TableOf(const std::string& name, uint32_t dim, OptimizerKind kind) {
  TableSpec table;
  table.name = name;
  table.dim = dim;
  table.optimizer.record = &RecordOf(kind);
  table.optimizer.learning_rate = 1;
  table.init.kind = InitKind::kZeros;
  return table;
}

// Returns a job with two tables, 8 shards and plain SGD from zero with rate 1: a row is minus the
// sum of its gradients.
inline Job TestJob(Mode mode) {
  Job job;
  job.train.mode = mode;
  job.cluster.shards = 8;
  job.parallel.gradients_mean = true;
  job.tables = {TableOf("wide", 1, OptimizerKind::kSgd), TableOf("deep", 2, OptimizerKind::kSgd)};
  return job;
}

struct ServerSetting {
  Job job;
  uint32_t workers = 2, servers = 1, rank = 0;
  ServerSabotage sabotage = {};
};

// A server and its frames.
//
// Invariant: replies_ has the frames that the node has sent and no call has taken, in order.
class ServerHarness {
 public:
  explicit ServerHarness(const ServerSetting& setting, FileSystem* files = nullptr,
                         Executor* executor = nullptr)
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
    options.wake = [this] { ++wakes_; };
    node_ =
        std::make_unique<ServerNode>(files != nullptr ? *files : *own_files_, executor_, options);
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

  static constexpr PeerId WorkerPeer(uint32_t worker) { return {1000 + worker}; }

  void SendView() {
    FromPeer(kSchedulerPeer, view_, 0);
    Tick();
  }
  void Tick() {
    node_->OnTick(now_ += 20);
    Collect();
  }
  template <typename Message>
  void FromPeer(PeerId from, const Message& message, uint64_t request_id) {
    Frame frame = EncodeMessage(message);
    frame.header.sender = from.value;
    frame.header.view = frame_view_.value_or(view_.view.value);
    frame.header.request_id = request_id;
    FromPeer(from, std::move(frame));
  }
  void FromPeer(PeerId from, Frame frame) {
    frame.header.group = group_;
    node_->OnFrame(from, std::move(frame));
    Collect();
  }

  // ---- A worker's requests; each under its own request id.

  uint64_t Push(uint32_t worker, uint64_t sequence, Clock clock, uint64_t examples,
                const std::vector<TableRows>& rows) {
    FromPeer(WorkerPeer(worker), PushOf(sequence, clock, examples, rows), ++request_id_);
    return request_id_;
  }
  PushRequest PushOf(uint64_t sequence, Clock clock, uint64_t examples,
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
  uint64_t Pull(uint32_t worker, Clock clock, PullMode mode, const std::vector<TableRows>& rows) {
    FromPeer(WorkerPeer(worker), PullOf(clock, mode, rows), ++request_id_);
    return request_id_;
  }
  PullRequest PullOf(Clock clock, PullMode mode, const std::vector<TableRows>& rows) const {
    RowSections sections = CutForServer(*job_, shards_, rows);
    PullRequest pull;
    pull.clock = clock;
    pull.mode = mode;
    pull.tables = std::move(sections.tables);
    pull.keys = Buffer::CopyOf<Key>(sections.keys);
    return pull;
  }
  StoreRequest StoreOf(uint64_t sequence, Clock clock, const std::vector<TableRows>& rows) const {
    RowSections sections = CutForServer(*job_, shards_, rows);
    StoreRequest store;
    store.sequence = {sequence};
    store.clock = clock;
    store.tables = std::move(sections.tables);
    store.keys = Buffer::CopyOf<Key>(sections.keys);
    store.rows = Buffer::CopyOf<float>(sections.floats);
    return store;
  }
  uint64_t Advance(uint32_t worker, Clock clock) {
    AdvanceRequest advance;
    advance.clock = clock;
    FromPeer(WorkerPeer(worker), advance, ++request_id_);
    return request_id_;
  }

  // ---- What came back.

  // Takes the reply to a request; returns nothing if there is none, and fails if there are two.
  template <typename Message>
  std::optional<Message> TakeReply(uint64_t request_id) {
    std::optional<Message> found;
    for (auto at = replies_.begin(); at != replies_.end();) {
      const Frame& frame = at->frame;
      if (frame.header.request_id != request_id ||
          frame.header.kind != static_cast<uint16_t>(Message::kKind)) {
        ++at;
        continue;
      }
      EXPECT_FALSE(found.has_value()) << "two answers to one request";
      EXPECT_EQ(frame.header.sender, self_.value);
      EXPECT_TRUE(DecodeMessage(frame, &found.emplace()).ok());
      at = replies_.erase(at);
    }
    return found;
  }
  // Takes the acknowledgment of a push.
  PushAck Ack(uint64_t request_id) {
    std::optional<PushAck> ack = TakeReply<PushAck>(request_id);
    EXPECT_TRUE(ack.has_value()) << "no answer to the push";
    return ack.value_or(PushAck());
  }
  // Reads the weights of `keys` without creating rows.
  std::vector<float> Read(uint32_t table, const std::vector<Key>& keys) {
    const uint32_t dim = job_->tables[table].dim;
    const uint64_t id = Pull(0, 0, PullMode::kRead, {{table, dim, keys, {}}});
    std::optional<PullReply> reply = TakeReply<PullReply>(id);
    EXPECT_TRUE(reply.has_value() && reply->code == Code::kOk);
    if (!reply) return {};
    // The reply is in the order of the shards; the result is in that of `keys`.
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
  // Sends a command, waits until it is done, and takes its answer.
  CommandDone Run(CommandKind kind, const std::string& path = "", Clock until = 0,
                  Clock since = 0) {
    Command command;
    command.command = kind;
    command.path = path;
    command.until = until;
    command.since = since;
    const CommandId id = Send(command);
    // Background work runs in order, so the command is done before this.
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
  CommandId Send(Command command) {
    command.id = {++command_id_};
    FromPeer(kSchedulerPeer, command, 0);
    return command.id;
  }
  // Returns nothing if the command has no answer yet.
  std::optional<CommandDone> TakeAnswer(CommandId id) {
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
  uint64_t Digest() { return Run(CommandKind::kDigest).digest[0]; }

  // Returns the number of heartbeats to the scheduler since the last call.
  size_t TakeHeartbeats() {
    return std::erase_if(replies_, [](const Outgoing& reply) {
      return reply.to == kSchedulerPeer &&
             reply.frame.header.kind == static_cast<uint16_t>(Heartbeat::kKind);
    });
  }

  // Returns how often background work has woken the loop.
  int wakes() const { return wakes_; }
  // Wakes the node without a tick or frame.
  void Collect() {
    Output output = node_->TakeOutput();
    for (Outgoing& outgoing : output.frames) replies_.push_back(std::move(outgoing));
  }
  ServerNode& node() { return *node_; }
  const Job& job() const { return *job_; }
  View& view() { return view_; }
  std::vector<Outgoing>& replies() { return replies_; }
  const std::vector<ShardId>& shards() const { return shards_; }
  void set_frame_view(std::optional<uint64_t> view) { frame_view_ = view; }

 private:
  const std::shared_ptr<const Job> job_;
  const PeerId self_;
  const uint16_t group_;
  const std::unique_ptr<FileSystem> own_files_ = NewMemoryFileSystem();
  const std::unique_ptr<Executor> own_executor_ = NewInlineExecutor();
  Executor& executor_;
  std::atomic<int> wakes_ = 0;
  std::unique_ptr<ServerNode> node_;
  View view_;
  std::vector<ShardId> shards_;
  std::optional<uint64_t> frame_view_;  // View in the workers' frames, instead of the current one.
  std::vector<Outgoing> replies_;
  TimeMs now_ = 0;
  uint64_t request_id_ = 0, command_id_ = 0;
};

}  // namespace hdps
