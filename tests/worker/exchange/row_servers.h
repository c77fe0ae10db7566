// Emulates row servers and a node: rows in a map, with replies at once on the trainer's thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/thread_annotations.h"
#include "common/protocol/membership_messages.h"
#include "common/protocol/row_messages.h"
#include "worker/exchange/node_channel.h"

namespace hdps {

struct CommandDone;
struct Heartbeat;
struct KvGet;
struct KvPut;
struct View;

// Row servers in memory.
//
// Invariant: a row that was never stored is all zeros. Pushes are recorded and change nothing.
//
// Belongs to the trainer's thread; any thread may answer what is held back.
class RowServers : public ComputeRequests {
 public:
  using RowKey = std::pair<uint32_t, Key>;  // Table, key.

  // Each server owns consecutive shards.
  RowServers(uint32_t num_servers, uint32_t num_shards, MonotonicClock& clock);

  NodeChannel& channel() { return channel_; }
  std::shared_ptr<const View> view() const { return view_; }

  // From now on holds pushes until AnswerPushes(), which gives all of them its answer.
  void HoldPushes() { hold_pushes_ = true; }
  void AnswerPushes(Code code = Code::kOk) HDPS_EXCLUDES(mutex_);
  size_t num_held() HDPS_EXCLUDES(mutex_);
  // Returns the largest number of requests held at once.
  size_t num_held_max() HDPS_EXCLUDES(mutex_);

  // Number of pulls and of pushes to each server; changed by the trainer's thread alone.
  std::map<uint32_t, uint32_t> num_pulls, num_pushes;
  // From now on answers no pull of part `pull` before the next push of part `push` is there.
  void HoldPulls(uint32_t pull, uint32_t push) { held_pulls_ = {pull, push}; }

  // Returns the requests in order: "pull 3", "push 3", "store 3" with the clock, and "advance 4"
  // after the answers of a push; "push 3.1" is that of part 1; "ask" where the place stands. The
  // requests of one ticket are one entry.
  std::vector<std::string> log() HDPS_EXCLUDES(mutex_);
  AdvanceAck stand;                           // The answer to where this worker's place stands.
  std::map<RowKey, std::vector<float>> rows;  // Stored rows.
  std::map<RowKey, std::vector<float>> gradients;  // Gradients of the last step pushed.
  std::map<RowKey, PullMode> pulled;               // Modes of the last pull.
  std::map<RowKey, std::vector<float>> stored;     // Rows of the last store.
  // Answers of the trainer to the scheduler.
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
  bool place_empty() const override { return false; }
  void Fail(Status status) override { failure = std::move(status); }

 private:
  struct Held {
    Ticket ticket;
    size_t num_requests = 0;
    std::vector<ServerRequest> then;
  };
  struct HeldPulls {
    uint32_t pull = 0, push = 0;
    Ticket ticket = {};
    std::vector<Frame> replies = {};
  };
  Frame Serve(const PullRequest& pull);
  void ServePulls(Ticket ticket, const std::vector<ServerRequest>& requests);
  void Log(const std::string& what, Clock clock, uint32_t part = 0) HDPS_EXCLUDES(mutex_);

  const std::shared_ptr<const View> view_;
  bool hold_pushes_ = false;
  std::optional<HeldPulls> held_pulls_;
  Clock pushed_ = -1;  // Clock of the last push.
  NodeChannel channel_;

  Mutex mutex_;
  std::deque<Held> held_ HDPS_GUARDED_BY(mutex_);
  size_t num_held_max_ HDPS_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> log_ HDPS_GUARDED_BY(mutex_);
};

}  // namespace hdps
