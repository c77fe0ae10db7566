// Servers and a node in a few lines: rows in a map, answered at once in the trainer's thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/thread_annotations.h"
#include "common/protocol/membership_messages.h"
#include "worker/exchange/node_channel.h"

namespace hdps {

struct CommandDone;
struct Heartbeat;
struct KvGet;
struct KvPut;
struct PullRequest;
struct View;
enum class PullMode : uint8_t;

// Invariant: a row that nobody stored is all zeros. Pushes are written down and change nothing.
//
// Belongs to the trainer's thread; what is held back may be answered by any.
class RowServers : public ComputeRequests {
 public:
  using RowKey = std::pair<uint32_t, Key>;  // Table, key.

  // Each server owns neighbouring shards.
  RowServers(uint32_t num_servers, uint32_t num_shards, MonotonicClock& clock);

  NodeChannel& channel() { return channel_; }
  std::shared_ptr<const View> view() const { return view_; }

  // From now on pushes wait for AnswerPushes(), which gives all that wait this answer.
  void HoldPushes() { hold_pushes_ = true; }
  void AnswerPushes(Code code = Code::kOk) HDPS_EXCLUDES(mutex_);
  size_t num_held() HDPS_EXCLUDES(mutex_);
  size_t num_held_max() HDPS_EXCLUDES(mutex_);  // So many waited at once.

  // What came, in order: "pull 3", "push 3", "store 3" with the clock, and behind the answers of a
  // push "advance 4". The requests of one ticket are one entry.
  std::vector<std::string> log() HDPS_EXCLUDES(mutex_);
  std::map<RowKey, std::vector<float>> rows;       // What is stored.
  std::map<RowKey, std::vector<float>> gradients;  // Of the last push.
  std::map<RowKey, PullMode> pulled;               // Of the last pull.
  std::map<RowKey, std::vector<float>> stored;     // Of the last store.
  // What the trainer has told the scheduler.
  std::vector<CommandDone> answers;
  std::vector<Heartbeat> reports;
  Status failure;

  void Start(Ticket ticket, std::vector<ServerRequest> requests,
             std::vector<ServerRequest> then) override;
  void Cancel(Ticket ticket) override {
    channel_.OnReplies(ticket, Status(Code::kCancelled, ""), {});
  }
  void Answer(const CommandDone& done) override { answers.push_back(done); }
  void Report(const Heartbeat& report) override { reports.push_back(report); }
  void Put(const KvPut&) override {}
  void Get(const KvGet&) override {}
  void Fail(Status status) override { failure = std::move(status); }

 private:
  struct Held {
    Ticket ticket;
    size_t num_requests = 0;
    std::vector<ServerRequest> then;
  };
  Frame Serve(const PullRequest& pull);
  void Log(const std::string& what, Clock clock) HDPS_EXCLUDES(mutex_);

  const std::shared_ptr<const View> view_;
  bool hold_pushes_ = false;
  NodeChannel channel_;

  Mutex mutex_;
  std::deque<Held> held_ HDPS_GUARDED_BY(mutex_);
  size_t num_held_max_ HDPS_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> log_ HDPS_GUARDED_BY(mutex_);
};

}  // namespace hdps
