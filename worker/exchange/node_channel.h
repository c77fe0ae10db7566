// Connects a worker's two threads: the node on the loop thread, and the trainer on its own.
#pragma once

#include <atomic>
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

// Gives the trainer blocking requests and a queue of commands.
//
// Invariant: what the node reports reaches the trainer in the order of the reports, except that
// commands and views wait while a reply is awaited. After the end every call returns kCancelled at
// once, so no thread waits for one that has ended.
class NodeChannel : public ComputeSide, public RendezvousStore {
 public:
  // `wake` ends the loop's wait for frames; it is called on the trainer's thread. Get() gives up
  // after `board_timeout_ms` without a value. `clock` must outlive the channel, and so must
  // `sections`, the transport's allocator or null.
  NodeChannel(std::function<void()> wake, MonotonicClock& clock, int64_t board_timeout_ms,
              SectionAllocator* sections = nullptr);

  // Lets `give_up` be called on the trainer's thread about every 100 ms while it waits; true ends
  // the wait, and this worker, which tells the scheduler. Must be called before the loop begins.
  void AskWhileWaiting(std::function<bool()> give_up) { give_up_ = std::move(give_up); }

  // ---- The trainer's thread.

  // Returns the next command; none if the job has ended for this worker. Ends an interruption.
  std::optional<Command> NextCommand();
  // Is true if the job goes back to a checkpoint, so that the current command is void. Until
  // NextCommand() is called, requests are not sent, replies not awaited, and progress not reported.
  bool interrupted() const { return interrupted_; }
  // Why the job has ended for this worker, ok if it is done; none if it has not, as far as the
  // trainer has seen.
  const std::optional<Status>& end() const { return end_; }
  // Waits until interrupted() or the end of the job, or until other processes than in `view` have
  // the workers' places, if it is not null. Returns false after `timeout_ms` without any of them,
  // which do not run while ComputeRequests::place_empty().
  bool AwaitInterruption(int64_t timeout_ms, const View* view = nullptr);
  // Returns a kPause that has come meanwhile, if any; does not wait.
  std::optional<Command> TakePause();
  // Waits for the first view. Returns null if the job ends before it comes.
  std::shared_ptr<const View> WaitForView();
  // The newest view that the trainer has seen.
  std::shared_ptr<const View> view() const { return view_; }
  WorkerId rank() const { return rank_; }

  Ticket Start(std::vector<ServerRequest> requests, std::vector<ServerRequest> then = {});
  // Waits for the replies and returns them, once; sets `*arrived_ns`, if not null, to the time of
  // their arrival.
  Result<std::vector<Frame>> Wait(Ticket ticket, int64_t* arrived_ns = nullptr);
  // Returns true if Wait() would return at once; does not wait.
  bool Ready(Ticket ticket);
  // Waits for any event: replies, a command, a view, the end.
  void WaitForAnything() {
    const ActivityBoard::Waiting waiting(&board_, WaitReason::kMembers);
    TakeIn(true);
  }
  // Waits for any event, as a StepReady() is, of a trainer that has no step to do.
  Status WaitForStep();
  // Ends WaitForStep(). Any thread may call it.
  void StepReady() { Enqueue(NextStep()); }
  // Drops the ticket; its replies are discarded.
  void Cancel(Ticket ticket);
  Result<std::vector<Frame>> Call(std::vector<ServerRequest> requests) {
    return Wait(Start(std::move(requests)));
  }
  // Records what the trainer's threads are doing.
  ActivityBoard& board() { return board_; }
  // The counters of this worker; any thread.
  Meters* meters() override { return &meters_; }
  int64_t NowNs() { return clock_.NowNs(); }
  // The transport's allocator, or null; any thread.
  SectionAllocator* sections() const { return sections_; }
  // Allocates a section that will be filled and sent to a server of view().
  Buffer MakeBytes(ServerId to, size_t size, std::span<std::byte>* bytes);
  // Returns the next number of this worker's stores, by which servers recognize a repeat.
  Sequence NextStore() { return {next_store_++}; }
  Status Put(const std::string& key, const std::string& value) override;
  Result<std::string> Get(const std::string& key) override;
  void Answer(CommandDone done);
  void Report(const Heartbeat& progress);
  void Fail(const Status& status);

  // ---- The loop's thread.

  // Hands the trainer's requests to the node. Called once a turn of the loop.
  void OnTurn(ComputeRequests& node, TimeMs now);
  // Returns the view that has interrupted the trainer since the last call, or that has other
  // workers than the one before. The loop then ends other waits of the trainer, which this channel
  // cannot end.
  std::optional<ViewId> TakeInterruption() { return std::exchange(interruption_told_, {}); }
  // Ends the channel after the loop has returned.
  void Close();

  void OnView(std::shared_ptr<const View> view, WorkerId rank) override;
  void OnCommand(const Command& command) override;
  void OnReplies(Ticket ticket, Status status, std::vector<Frame> replies) override;
  void OnKvValue(const KvValue& value) override;
  void OnEnd(Status status) override;
  Activity CurrentActivity() const override { return board_.Now(); }
  std::string Trouble() const override { return board_.trouble(); }

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
  // A deadline of AwaitInterruption() has passed: of the wait with this number, which may be over.
  struct InterruptionLate {
    uint64_t wait = 0;
  };
  struct TimeToAsk {};  // Whether to give up.
  struct NextStep {};
  using Event = std::variant<NewView, Command, Replies, KvValue, StoreLate, InterruptionLate,
                             TimeToAsk, NextStep, End>;
  struct NodeRequest {
    // The View::restarts that the trainer knew; the request is dropped if it has changed. None: the
    // request holds in any view.
    std::optional<uint32_t> restarts;
    std::function<void(ComputeRequests&)> make;
  };

  // Sends a request that belongs to the current work: dropped after an interruption.
  void RequestIfCurrent(std::function<void(ComputeRequests&)> make);
  void Request(std::function<void(ComputeRequests&)> make) {
    Request(NodeRequest{std::nullopt, std::move(make)});
  }
  void Request(NodeRequest request);
  Status Interruption() const;
  void Enqueue(Event event);
  // Takes in the next event, and waits for it if `wait`. Returns false if there was none.
  bool TakeIn(bool wait);
  void Sort(Event event);
  Status EndStatus() const;
  void GiveUpIfAsked();

  // Both queues stay short: a handful of requests, one command at a time, one view a change. The
  // limits only stop a runaway; neither side waits at them.
  BoundedQueue<Event> events_{4096};
  BoundedQueue<NodeRequest> requests_{4096};

  // Constant after construction.
  const std::function<void()> wake_;
  MonotonicClock& clock_;
  const int64_t board_timeout_ms_;
  SectionAllocator* const sections_;
  std::function<bool()> give_up_;  // May be empty.

  std::atomic<bool> waits_ = false;  // The trainer waits for an event.

  // Safe on any thread.
  ActivityBoard board_;
  Meters meters_{FigureLayout(FigureRole::kWorker, /*num_tables=*/0)};

  // The trainer's thread only.
  uint64_t next_ticket_ = 1;
  uint64_t next_store_ = 0;
  std::shared_ptr<const View> view_;
  WorkerId rank_;
  std::deque<Command> commands_;
  std::map<Ticket, Replies> replies_;
  std::set<Ticket> cancelled_;  // Tickets whose replies are still to come.
  std::map<std::string, std::optional<KvValue>> values_;  // None: the wait was given up.
  std::optional<Status> end_;
  bool interrupted_ = false;
  uint64_t waits_begun_ = 0, late_wait_ = 0;  // Number of the last AwaitInterruption(), and of the
                                              // last one whose deadline has passed.
  std::optional<NewView> next_view_;  // View of the interruption; takes effect in NextCommand().

  // The loop's thread only.
  TimeMs now_ = 0;
  TimeMs asked_at_ = 0;                    // Time of the last TimeToAsk.
  uint32_t restarts_ = 0;                  // View::restarts of the newest view.
  std::shared_ptr<const View> told_view_;  // The newest view.
  std::optional<ViewId> interruption_told_;
  struct Awaited {
    TimeMs until = 0;
    uint64_t wait = 0;
  };
  std::optional<Awaited> awaited_;  // Deadline of the last AwaitInterruption().
  // Keys that are awaited on the scheduler's board, and since when.
  std::map<std::string, TimeMs> asked_;
};

}  // namespace hdps
