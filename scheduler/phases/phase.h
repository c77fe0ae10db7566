// The base of a job's phases: each begins, takes answers and ticks, and returns what follows.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/net/node.h"
#include "common/protocol/view.h"
#include "scheduler/job_record.h"
#include "scheduler/members/job_failure.h"
#include "scheduler/phases/job_at_hand.h"

namespace hdps {

struct Job;

class CheckpointCatalog;
class CommandTracker;
class FileSystem;
class Membership;
class PendingSave;
class RunReport;
class WorkerFacts;

// The orders of a phase, carried out before what follows.
struct Orders {
  struct Sent {
    PeerId to;
    Command command;  // Not numbered yet.
  };
  std::vector<Sent> sent;
  std::vector<PeerId> dropped;  // Their answers are not awaited any more.
  std::optional<View> view;     // A new view, to be entered and sent to all members.

  void Send(const std::vector<PeerId>& to, const Command& command) {
    for (const PeerId peer : to) sent.push_back({peer, command});
  }
};

struct Answer {
  PeerId from;
  const Command& command;
  const CommandDone& done;
};

// The decision what follows, on which the coordinator acts.
struct Next {
  enum class What : uint8_t {
    kWait,    // The phase goes on.
    kReady,   // All members stand at the plan's position: the job begins, or goes on after a loss.
    kDone,    // The plan says what comes next.
    kEnter,   // A phase of the kind `phase` begins.
    kAgain,   // This phase begins again, as the kind `phase`.
    kBlame,   // `member` is to blame: it was told `command`, and `message` says what is wrong.
    kGoBack,  // Rows are lost: only a checkpoint helps.
    kFail,    // The job ends with `exit_status`.
    kOver,    // The job is done.
  };
  What what = What::kWait;
  JobPhase phase = JobPhase::kOver;
  PeerId member = {};
  Command command = {};
  int exit_status = 0;
  std::string message = {};

  static Next Wait() { return {}; }
  static Next Ready() { return {.what = What::kReady}; }
  static Next Done() { return {.what = What::kDone}; }
  static Next Enter(JobPhase phase) { return {.what = What::kEnter, .phase = phase}; }
  static Next Again(JobPhase phase) { return {.what = What::kAgain, .phase = phase}; }
  static Next Blame(PeerId member, const Command& command, std::string message) {
    return {
        .what = What::kBlame, .member = member, .command = command, .message = std::move(message)};
  }
  static Next GoBack() { return {.what = What::kGoBack}; }
  static Next Fail(int exit_status, std::string message) {
    return {.what = What::kFail, .exit_status = exit_status, .message = std::move(message)};
  }
  static Next Over() { return {.what = What::kOver}; }
};

// The parts of the scheduler that phases use. They read members and commands, and change them only
// by orders.
struct PhaseParts {
  const Job& job;
  const std::string& out;
  Membership& members;
  const CommandTracker& tracker;
  CheckpointCatalog& checkpoints;
  RunReport& report;
  FileSystem& files;
  WorkerFacts& facts;
  PendingSave& pending;
  std::function<void(const std::string&)> notice;
  std::function<void(const std::string&)> warn;
};

// The job that a call may change, and the orders to fill in.
struct Turn {
  JobAtHand& job;
  Orders& orders;
  TimeMs now = 0;
};

// Invariant: from Begin() until it returns a Next other than kWait, a phase is the present one and
// gets each answer to its orders once. It knows neither the coordinator nor other phases.
class Phase {
 public:
  explicit Phase(const PhaseParts& parts) : parts_(parts) {}
  virtual ~Phase() = default;

  // Begins the phase. Called again after kAgain, and when servers were lost whose rows others hold;
  // it then starts over but keeps its results so far.
  virtual Next Begin(const Turn& turn) = 0;
  // Takes the answer to a command that was done.
  virtual Next OnAnswer(const Answer& answer, const Turn&) {
    answers_[answer.from] = answer.done;
    return Next::Wait();
  }
  // Takes the answer to a command that could not be done. Returns true if the phase goes on all the
  // same; otherwise the member is to blame.
  virtual bool TakesRefusal(const Answer&) { return false; }
  // Called when no command of the phase is open.
  virtual Next OnAllAnswered(const Turn& turn) = 0;
  virtual Next OnTick(const Turn&) { return Next::Wait(); }

 protected:
  static Command MakeCommand(CommandKind kind) {
    Command command;
    command.command = kind;
    return command;
  }

  // Returns whether a server cannot read a checkpoint because of its contents, so that another
  // process in its place could not either.
  bool IsOfDamagedFiles(const Answer& answer) const;
  std::string FaultOf(const Answer& answer) const;  // Such as "server 0 (host-a 4711): disk full".

  const PhaseParts& parts_;
  std::map<PeerId, CommandDone> answers_;
};

// Such as "2 servers and 1 worker".
std::string CountsOf(const Membership& members);

}  // namespace hdps
