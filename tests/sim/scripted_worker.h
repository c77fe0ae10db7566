// Scripts the compute side of a worker: it acts like a trainer on rows whose values are known.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/net/node.h"
#include "common/platform/random.h"
#include "common/protocol/board_messages.h"
#include "common/protocol/command_messages.h"
#include "common/protocol/view.h"
#include "tests/sim/tally.h"
#include "worker/exchange/compute_port.h"
#include "worker/exchange/key_split.h"
#include "worker/exchange/pull_plan.h"

namespace hdps::sim {

// AUC after each epoch of a `judged` script. The second is the best until the job ends after epoch
// kJudgedEnd.
inline constexpr double kJudgedAuc[] = {0.5, 0.75, 0.5, 0.75, 0.25, 1, 1, 1};
inline constexpr uint32_t kJudgedPatience = 3, kJudgedEnd = 5;
inline constexpr double kJudgedFactor = 0.5;
// Returns the rate of an epoch: it falls after the third, and after each that follows.
inline double JudgedRate(uint32_t epoch) { return epoch < 3 ? 1 : epoch == 3 ? 0.5 : 0.25; }

struct ScriptOptions {
  uint64_t seed = 0;
  Clock steps_per_epoch = 10;
  TimeMs compute_ms_min = 0;
  TimeMs compute_ms_max = 40;  // A step takes from compute_ms_min to this.
  // The next pull waits for the acknowledgment; otherwise it follows the push at once.
  bool await_push = true;
  bool pull = true;             // False: only pushes, many at once.
  uint32_t pushes_at_once = 1;  // Pushes in flight without pulls.
  uint32_t lookahead = 0;       // Steps whose rows are requested before their turn.
  bool repairs = true;          // sync: prefetched rows are repaired.
  DType wire = DType::kFp32;
  uint32_t lists = 1;  // Pushes of a step: see ListsOfStep().
  bool judged = false;
  bool rows_leave = false;  // As in TallyTables().
  // Pushes refer to key lists that the servers do not have.
  bool strange_lists = false;
  // Sabotage: does not request what changed in the step after the prefetch.
  bool since_late = false;
  // Sabotage: announces the clock before the pushes are acknowledged.
  bool advance_early = false;
  Clock mistaken_at = -1;  // Clock at which the worker reports a mistake of the operator and ends.
};

// Trains by script. Before, it meets the other ranks on the scheduler's key-value store, like a
// collective.
//
// Invariant: at most one step is computed at a time; its clock is announced only when all servers
// have acknowledged every push of earlier steps, unless sabotaged. Belongs to the simulation's one
// thread.
class ScriptedWorker : public ComputeSide {
 public:
  ScriptedWorker(const ScriptOptions& options, Tally* tally);
  void Connect(ComputeRequests* requests) { requests_ = requests; }

  void OnTime(TimeMs now);
  void OnView(std::shared_ptr<const View> view, WorkerId rank) override;
  void OnCommand(const Command& command) override;
  void OnReplies(Ticket ticket, Status status, std::vector<Frame> replies) override;
  void OnKvValue(const KvValue& value) override;
  void OnEnd(Status status) override;

  Clock clock() const { return acknowledged_; }
  bool ended() const { return end_.has_value(); }
  const Status& end() const { return *end_; }
  // Returns the time from the first pull to the last reply.
  TimeMs train_ms() const { return trained_at_ - train_from_.value_or(0); }
  // Returns the first failure, or an empty text.
  const std::string& trouble() const { return trouble_; }

 private:
  enum class Purpose : uint8_t { kPrefetch, kPull, kPush, kAdvance, kStand };

  Ticket Send(Purpose purpose, std::vector<ServerRequest> requests,
              std::vector<ServerRequest> then = {});
  // A step whose rows were requested or have arrived.
  struct Step {
    std::vector<Key> keys[2];
    std::vector<float> rows[2];
    KeySplit split;
    ViewId split_in;  // The view by which it was split.
    uint64_t list = 0;
    std::vector<Clock> held;  // [workers]: pushes that the rows must contain at least.
    // [servers]: steps that prefetched rows contain; kNotRead: none were prefetched.
    std::vector<Clock> since;
    Clock pushed = 0;  // Pushes sent before the prefetch.
    // Requests without a reply.
    struct Asked {
      std::optional<Ticket> ticket;
      PullPlan plan;
    };
    Asked ahead, last;
    std::vector<Frame> last_replies;  // Replies before those of `ahead`.
  };

  Step* NewStep(Clock clock);
  void PrefetchRows();
  void StartStep();
  void Ask(Step::Asked* asked, Purpose purpose, std::vector<ServerRequest> requests);
  void Repair(Step* step);
  void OnRows(Ticket ticket, const std::vector<Frame>& replies);
  bool PlaceAhead(Step* step, const std::vector<Frame>& replies);
  bool Place(Step* step, const std::vector<Frame>& replies);
  // Returns every so many-th key of a step.
  KeySplit PartOf(const Step& step, uint32_t part) const;
  void PushStep(Clock clock);
  void OnPushed(const std::vector<Frame>& replies);
  void FillPipeline();
  // Asks the servers where a place stands that another process had, and goes on from there.
  void AskStand();
  void OnStand(const std::vector<Frame>& replies);
  void FinishStep();
  // Continues the running command, or answers it if it is done.
  void Continue();
  void AnswerTraining(Clock end_of_epoch);
  Clock Target() const;
  bool Counts() const { return tally_->Counts(view_->restarts); }
  void DropWork();
  bool Check(const Status& status);

  const ScriptOptions options_;
  Tally* const tally_;
  ComputeRequests* requests_ = nullptr;
  Random random_;
  TimeMs now_ = 0;
  std::optional<TimeMs> train_from_;
  TimeMs trained_at_ = 0;

  std::shared_ptr<const View> view_;
  uint32_t rank_ = 0;
  std::set<std::string> met_;  // Ranks seen on the key-value store; training waits for all.
  std::optional<Command> training_;
  bool takes_up_ = false;          // Does not know yet where its place stands.
  std::vector<CommandId> pauses_;  // To be answered after the current step.
  Clock clock_ = 0;                // Steps whose push was sent.
  Clock acknowledged_ = 0;         // Pushes acknowledged by all servers.
  Clock some_have_ = 0;            // Steps, taken up, of which some server has the push.
  uint64_t next_ticket_ = 1;
  uint64_t next_sequence_ = 0;
  std::optional<TimeMs> compute_until_;
  bool pulling_ = false;  // The rows of step clock_ were requested, but it was not pushed yet.
  std::map<Ticket, Purpose> waiting_;
  std::set<Ticket> cancelled_;
  std::map<Clock, Step> steps_;
  uint64_t next_list_ = 1;
  std::vector<float> gradients_[2];
  std::optional<Status> end_;
  std::string trouble_;
};

}  // namespace hdps::sim
