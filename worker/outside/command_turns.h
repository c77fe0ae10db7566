// Carries out the scheduler's commands for a table worker, between the steps of its caller.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/protocol/command_messages.h"
#include "worker/exchange/node_channel.h"
#include "worker/outside/program_state.h"
#include "worker/outside/table_exchange.h"
#include "worker/outside/table_worker.h"

namespace hdps {

// Invariant: in standing kSteps either a step may begin or an evaluation is due. Each command is
// answered once. clock() is the number of finished steps, whatever was trained, loaded or paused.
//
// Belongs to the caller's thread.
class CommandTurns {
 public:
  // Requires: all outlive it.
  CommandTurns(const TableWorkerOptions& options, NodeChannel& channel, TableExchange& exchange);

  // Carries out commands until a step may begin or an evaluation is due. Errors: kCancelled if the
  // standing is not kSteps then; another error has ended the job for this worker.
  Status Await();
  // Waits as Await() if no step may begin and no evaluation is due. After a way back Await()
  // returns as soon as this worker's rows are loaded, before the others': they may wait for the
  // caller in a sum of their own, and so cannot have obeyed yet.
  Status AwaitStep() { return train_ || evaluation_ ? Status() : Await(); }
  // The first step may begin: a later way back to a checkpoint is told to the caller.
  void BeginSteps() { has_begun_ = true; }
  // Counts a step that was pushed, and carries out what the scheduler wants before the next one.
  Status EndStep(uint64_t examples);
  // Returns what a request's failure means for the caller, after having carried out the commands of
  // a way back.
  Status Judge(const Status& failure);
  // Answers the evaluation that is due.
  Status AnswerEvaluation(const OutsideFigures& figures);
  void WantCheckpoint(std::optional<std::string> state);
  // Makes empty steps until an evaluation is due or the standing is not kSteps any more.
  Status FinishSteps();
  void GoOn() { standing_ = Standing::kSteps; }

  Standing standing() const { return standing_; }
  const std::string& reason() const { return reason_; }
  Clock clock() const { return clock_; }
  bool evaluation_due() const { return evaluation_.has_value(); }
  const std::optional<std::string>& restored() const { return restored_; }
  PushedStep NextStep(uint64_t examples) const;  // Requires: a step may begin.

 private:
  // A step without examples, half done: it is finished when `awaited` is answered.
  struct EmptyStep {
    Ticket awaited;
  };

  Status Execute(const Command& command);
  Status AnswerTraining();
  CommandDone AnswerTo(const Command& command) const;
  Status StoreState();
  Status RestoreState();
  // Forgets what a way back to a checkpoint makes void.
  void Drop();
  Status End();  // Takes in that the job has ended for this worker.
  Status Fail(const Status& failure);
  void Report();
  // Returns true once the scheduler has said to pause; does not wait.
  bool PauseHasCome();
  // Waits for an event, or for the reply to `ticket`. Returns false if what follows is up to
  // Await(): a pause, a way back or the end of the job.
  bool WaitFor(std::optional<Ticket> ticket);

  // ---- After Finish().
  // Makes the next empty step, or waits where there is none to make.
  Status TakeEmptyStep();
  Status FollowOthers();  // The same in async mode.
  // Returns the clock at which the last worker finished, if all have.
  Result<std::optional<Clock>> LastFinish();

  const TableWorkerOptions& options_;
  NodeChannel& channel_;
  TableExchange& exchange_;
  ProgramState kept_;
  const bool async_;

  Standing standing_ = Standing::kSteps;
  std::string reason_;
  bool has_begun_ = false;
  Clock clock_ = 0;
  Clock base_ = 0;                // Clock at which the job was begun or loaded.
  uint64_t examples_ = 0;         // Since the state was begun or loaded.
  std::optional<Command> train_;  // The order to train that has not been answered.
  uint64_t trained_ = 0;          // Examples since that order.
  std::optional<Command> pause_;  // To be answered after it.
  std::optional<Command> evaluation_;

  bool restores_ = false;   // A state has been loaded and restored_ is not of it yet.
  bool went_back_ = false;  // It was a way back.
  std::optional<std::string> restored_;

  Clock wanted_checkpoint_ = 0;             // 0: none.
  std::optional<std::string> given_state_;  // The caller's state at wanted_checkpoint_.

  bool finished_ = false;
  bool follows_ = false;              // The order to train came after that.
  bool finish_told_ = false;          // Servers know the clock at which this worker finished.
  std::optional<Clock> last_finish_;  // Largest clock at which a worker finished; none: unknown.
  std::optional<EmptyStep> empty_step_;
};

}  // namespace hdps
