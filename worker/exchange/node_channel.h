// Where a worker's two threads meet: the node on the loop thread, the trainer on another.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/bounded_queue.h"
#include "common/base/status.h"
#include "common/net/node.h"
#include "common/net/section_allocator.h"
#include "common/platform/monotonic_clock.h"
#include "common/protocol/board_messages.h"
#include "common/protocol/command_messages.h"
#include "worker/collective/collective.h"
#include "worker/exchange/activity_board.h"
#include "worker/exchange/compute_port.h"

namespace hdps {

struct CommandDone;
struct Heartbeat;
struct View;

// The trainer's view of the node: requests that wait for their answers, commands one by one.
//
// Invariant: what the node says reaches the trainer in the order it was said, except that commands
// and views wait while an answer is waited for. After the end every call returns kCancelled at
// once, so no thread waits for one that is gone.
class NodeChannel : public ComputeSide, public RendezvousStore {
 public:
  // `wake` ends the loop's wait for frames; called from the trainer's thread. A Get() that found
  // nothing for `board_timeout_ms` gives up. `clock` must outlive the channel, and so must
  // `sections`: the transport's, or null.
  NodeChannel(std::function<void()> wake, MonotonicClock& clock, int64_t board_timeout_ms,
              SectionAllocator* sections = nullptr);

  // ---- The trainer's thread.

  // The next command; none when the job has ended for this worker. Ends an interruption.
  std::optional<Command> NextCommand();
  // The job goes back to a checkpoint: the command at hand is of no use. Until NextCommand() no
  // request is sent, no answer waited for, nothing reported.
  bool interrupted() const { return interrupted_; }
  // Waits until interrupted(), or the end of the job. False after `timeout_ms` without either.
  bool AwaitInterruption(int64_t timeout_ms);
  // A kPause that has come meanwhile; does not wait.
  std::optional<Command> TakePause();
  // Waits for the first view. Null when the job has ended before it came.
  std::shared_ptr<const View> WaitForView();
  std::shared_ptr<const View> view() const { return view_; }  // The newest the trainer has seen.
  WorkerId rank() const { return rank_; }

  Ticket Start(std::vector<ServerRequest> requests, std::vector<ServerRequest> then = {});
  // Waits for the answers, which come out once; when they arrived is told too, if it is asked for.
  Result<std::vector<Frame>> Wait(Ticket ticket, int64_t* arrived_ns = nullptr);
  // Whether Wait() would return at once; does not wait.
  bool Ready(Ticket ticket);
  // Answers, commands, views, the end.
  void WaitForAnything() {
    const ActivityBoard::Waiting waiting(&board_, Hold::kMembers);
    TakeIn(true);
  }
  // Nobody will wait for it.
  void Cancel(Ticket ticket);
  Result<std::vector<Frame>> Call(std::vector<ServerRequest> requests) {
    return Wait(Start(std::move(requests)));
  }
  // Where the trainer's threads say what they are at.
  ActivityBoard& board() { return board_; }
  SectionAllocator* sections() const { return sections_; }  // The transport's, or null; any thread.
  // A section to be filled and sent to a server of view().
  Buffer MakeBytes(ServerId to, size_t size, std::span<std::byte>* bytes);
  // Numbers this worker's stores, so that servers know a repeat of one.
  Sequence NextStore() { return {next_store_++}; }
  Status Put(const std::string& key, const std::string& value) override;
  Result<std::string> Get(const std::string& key) override;
  void Answer(CommandDone done);
  void Report(const Heartbeat& progress);
  void Fail(const Status& status);

  // ---- The loop's thread.

  // Hands the trainer's wishes to the node; once a turn of the loop.
  void OnTurn(ComputeRequests& node, TimeMs now);
  // View::restarts, where the trainer has been interrupted since the last call: it may be waiting
  // for something else than this channel.
  std::optional<uint32_t> TakeInterruption() {
    if (!std::exchange(interruption_told_, false)) return std::nullopt;
    return restarts_;
  }
  // The loop has returned: nobody serves this channel any more.
  void Close();

  void OnView(std::shared_ptr<const View> view, WorkerId rank) override;
  void OnCommand(const Command& command) override;
  void OnReplies(Ticket ticket, Status status, std::vector<Frame> replies) override;
  void OnKvValue(const KvValue& value) override;
  void OnEnd(Status status) override;
  Activity Doing() const override { return board_.Now(); }

 private:
  struct NewView {
    std::shared_ptr<const View> view;
    WorkerId rank;
  };
  struct Replies {
    Ticket ticket;
    Status status;
    std::vector<Frame> frames;
    int64_t arrived_ns = 0;
  };
  struct End {
    Status status;
  };
  struct StoreLate {
    std::string key;
  };
  struct InterruptionLate {};
  using Event = std::variant<NewView, Command, Replies, KvValue, StoreLate, InterruptionLate, End>;
  struct Wish {
    // View::restarts that the trainer knew, where what it wishes is of no use in another.
    std::optional<uint32_t> restarts;
    std::function<void(ComputeRequests&)> make;
  };

  // Of the work at hand, or of none in particular.
  void AskOfWork(std::function<void(ComputeRequests&)> make);
  void Ask(std::function<void(ComputeRequests&)> make) { Ask(Wish{std::nullopt, std::move(make)}); }
  void Ask(Wish wish);
  Status Interruption() const;
  void Enqueue(Event event);  // The loop's thread.
  // Takes the next event in; waits for it when `wait`. False when there was none.
  bool TakeIn(bool wait);
  void Sort(Event event);
  Status EndStatus() const;

  // Both queues hold few items by what the two sides may do: a handful of requests, one command at
  // a time, a view a change. The limits stop a runaway, and neither side ever waits at them.
  BoundedQueue<Event> events_{4096};
  BoundedQueue<Wish> wishes_{4096};

  // Constant after construction.
  const std::function<void()> wake_;
  MonotonicClock& clock_;
  const int64_t board_timeout_ms_;
  SectionAllocator* const sections_;

  ActivityBoard board_;  // Any thread.

  // The trainer's thread only.
  uint64_t next_ticket_ = 1;
  uint64_t next_store_ = 0;
  std::shared_ptr<const View> view_;
  WorkerId rank_;
  std::deque<Command> commands_;
  std::map<Ticket, Replies> replies_;
  std::set<Ticket> cancelled_;                            // Whose answers are still to come.
  std::map<std::string, std::optional<KvValue>> values_;  // None: given up.
  std::optional<Status> end_;
  bool interrupted_ = false;
  bool interruption_late_ = false;
  std::optional<NewView> next_view_;  // Of the interruption: counts from NextCommand() on.

  // The loop's thread only.
  TimeMs now_ = 0;
  uint32_t restarts_ = 0;  // Of the newest view.
  bool interruption_told_ = false;
  std::optional<TimeMs> await_until_;    // An interruption.
  std::map<std::string, TimeMs> asked_;  // Keys on the board we wait for, and since when.
};

}  // namespace hdps
