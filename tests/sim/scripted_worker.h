// A compute side that counts: it does what a trainer does, on rows whose right values are known.
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

// What evaluations come to where a script is `judged`: the AUC behind each epoch, of which the
// second is the best until the job ends behind epoch kJudgedEnd.
inline constexpr double kJudgedAuc[] = {0.5, 0.75, 0.5, 0.75, 0.25, 1, 1, 1};
inline constexpr uint32_t kJudgedPatience = 3, kJudgedEnd = 5;
inline constexpr double kJudgedFactor = 0.5;
// The rate of epoch `epoch`: it falls behind the third, and behind each that follows.
inline double JudgedRate(uint32_t epoch) { return epoch < 3 ? 1 : epoch == 3 ? 0.5 : 0.25; }

struct ScriptOptions {
  uint64_t seed = 0;
  Clock steps_per_epoch = 10;
  TimeMs compute_ms_min = 0;
  TimeMs compute_ms_max = 40;   // A step takes min..this.
  bool await_push = true;       // Before the next pull; otherwise that goes right behind it.
  bool pull = true;             // False: pushes only, many at once.
  uint32_t pushes_at_once = 1;  // Without pulls.
  uint32_t lookahead = 0;       // Steps whose rows are asked for before their turn.
  bool repairs = true;          // sync: rows that were read ahead are repaired.
  DType wire = DType::kFp32;
  bool judged = false;
  bool rows_leave = false;     // As in TallyTables().
  bool strange_lists = false;  // Pushes name lists that the servers have never heard of.
  // Sabotage: what changed in the step after the rows were read ahead is not asked for.
  bool since_late = false;
  // Sabotage: the clock is announced before the pushes are acknowledged.
  bool advance_early = false;
  Clock mistaken_at = -1;  // At this clock the worker finds the operator mistaken and gives up.
};

// Before it trains it meets the other ranks on the scheduler's board, as a collective does.
//
// Invariant: at most one step is being computed; its clock is announced only when every push of the
// steps before it has been acknowledged by every server, unless that is sabotaged. Belongs to the
// simulation's one thread.
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
  // How long the training took, from the first pull to the last answer.
  TimeMs train_ms() const { return trained_at_ - train_from_.value_or(0); }
  // The first thing that went wrong; empty when nothing did.
  const std::string& trouble() const { return trouble_; }

 private:
  enum class Purpose : uint8_t { kPrefetch, kPull, kPush, kAdvance };

  Ticket Send(Purpose purpose, std::vector<ServerRequest> requests,
              std::vector<ServerRequest> then = {});
  // A step whose rows are on their way or here.
  struct Step {
    std::vector<Key> keys[2];
    std::vector<float> rows[2];
    KeySplit split;
    uint64_t list = 0;
    std::vector<Clock> held;   // [workers]: pushes that the rows must at least hold.
    std::vector<Clock> since;  // [servers]: steps that rows read ahead hold; kNotRead: none were.
    Clock pushed = 0;          // Where they are read ahead: pushes sent before.
    // Requests that are out.
    struct Asked {
      std::optional<Ticket> ticket;
      PullPlan plan;
    };
    Asked ahead, last;
    std::vector<Frame> last_replies;  // That came before those of `ahead`.
  };

  Step* NewStep(Clock clock);
  void PrefetchRows();
  void StartStep();
  void Ask(Step::Asked* asked, Purpose purpose, std::vector<ServerRequest> requests);
  void Repair(Step* step);
  void OnRows(Ticket ticket, const std::vector<Frame>& replies);
  bool PlaceAhead(Step* step, const std::vector<Frame>& replies);
  bool Place(Step* step, const std::vector<Frame>& replies);
  void PushStep(Clock clock);
  void OnPushed(const std::vector<Frame>& replies);
  void FillPipeline();
  void FinishStep();
  // Goes on with the running command, or answers it when it is done.
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
  std::set<std::string> met_;  // Ranks found on the board; training waits for all of them.
  std::optional<Command> training_;
  std::vector<CommandId> pauses_;  // To be answered when the step at hand is over.
  Clock clock_ = 0;                // Steps whose push has been sent.
  Clock acknowledged_ = 0;         // Pushes acknowledged by all servers.
  uint64_t next_ticket_ = 1;
  uint64_t next_sequence_ = 0;
  std::optional<TimeMs> compute_until_;
  bool pulling_ = false;  // The rows of step clock_ have been asked for, and it is not pushed yet.
  std::map<Ticket, Purpose> waiting_;
  std::set<Ticket> cancelled_;
  std::map<Clock, Step> steps_;
  uint64_t next_list_ = 1;
  std::vector<float> gradients_[2];
  std::optional<Status> end_;
  std::string trouble_;
};

}  // namespace hdps::sim
