// Harness for a server: scripted scheduler and workers, frame by frame.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/job/job_spec.h"
#include "common/net/node.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "common/protocol/message_frames.h"
#include "common/protocol/view.h"
#include "gtest/gtest.h"
#include "server/server_node.h"

namespace hdps {

enum class CommandKind : uint8_t;
enum class Mode : uint8_t;
enum class OptimizerKind : uint8_t;
enum class PullMode : uint8_t;
struct Command;
struct CommandDone;
struct PullRequest;
struct PushAck;
struct PushRequest;
struct StoreRequest;
struct TableSpec;

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

TableSpec TableOf(const std::string& name, uint32_t dim, OptimizerKind kind);

// Returns a job with two tables, 8 shards and plain SGD from zero with rate 1: a row is minus the
// sum of its gradients.
Job TestJob(Mode mode);

struct ServerSetting {
  Job job;
  uint32_t workers = 2, servers = 1, rank = 0;
  ServerSabotage sabotage = {};
  bool guests_read = false;
  MonotonicClock* clock = nullptr;  // Measures times of figures; null: none.
  Executor* file_writes = nullptr;  // As in ServerNodeOptions.
};

// A server and its frames.
//
// Invariant: replies_ has the frames that the node has sent and no call has taken, in order.
class ServerHarness {
 public:
  explicit ServerHarness(const ServerSetting& setting, FileSystem* files = nullptr,
                         Executor* executor = nullptr);

  static constexpr PeerId WorkerPeer(uint32_t worker) { return {1000 + worker}; }

  void SendView();
  void Tick();
  template <typename Message>
  void FromPeer(PeerId from, const Message& message, uint64_t request_id) {
    Frame frame = EncodeMessage(message);
    frame.header.sender = from.value;
    frame.header.view = frame_view_.value_or(view_.view.value);
    frame.header.request_id = request_id;
    FromPeer(from, std::move(frame));
  }
  void FromPeer(PeerId from, Frame frame);

  // ---- A worker's requests; each under its own request id.

  uint64_t Push(uint32_t worker, uint64_t sequence, Clock clock, uint64_t examples,
                const std::vector<TableRows>& rows);
  PushRequest PushOf(uint64_t sequence, Clock clock, uint64_t examples,
                     const std::vector<TableRows>& rows) const;
  uint64_t Pull(uint32_t worker, Clock clock, PullMode mode, const std::vector<TableRows>& rows);
  PullRequest PullOf(Clock clock, PullMode mode, const std::vector<TableRows>& rows) const;
  StoreRequest StoreOf(uint64_t sequence, Clock clock, const std::vector<TableRows>& rows) const;
  uint64_t Advance(uint32_t worker, Clock clock);

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
  PushAck Ack(uint64_t request_id);
  // Reads the weights of `keys` without creating rows.
  std::vector<float> Read(uint32_t table, const std::vector<Key>& keys);
  // Sends a command, waits until it is done, and takes its answer.
  CommandDone Run(CommandKind kind, const std::string& path = "", Clock until = 0, Clock since = 0);
  CommandId Send(Command command);
  // Returns nothing if the command has no answer yet.
  std::optional<CommandDone> TakeAnswer(CommandId id);
  uint64_t Digest();

  // Returns the number of heartbeats to the scheduler since the last call.
  size_t TakeHeartbeats();

  // Returns how often background work has woken the loop.
  int wakes() const { return wakes_; }
  // Wakes the node without a tick or frame.
  void Collect();
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
