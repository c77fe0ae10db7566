// What every phase of a job is: it begins, hears answers and ticks, and says what follows.
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

// What a phase wants done before what follows.
struct Orders {
  struct Sent {
    PeerId to;
    Command command;  // Without a number yet.
  };
  std::vector<Sent> sent;
  std::vector<PeerId> dropped;  // No answer of these is waited for any more.
  std::optional<View> view;     // Everybody is told of the next view.

  void Send(const std::vector<PeerId>& to, const Command& command) {
    for (const PeerId peer : to) sent.push_back({peer, command});
  }
};

struct Answer {
  PeerId from;
  const Command& command;
  const CommandDone& done;
};

// What follows: a value, which the coordinator acts on.
struct Next {
  enum class What : uint8_t {
    kWait,    // More is to come of this phase.
    kReady,   // Everybody stands at the plan's position: the job begins, or goes on behind a loss.
    kDone,    // What comes next is the plan's.
    kEnter,   // `phase`, of another kind.
    kAgain,   // The same kind begins again, as `phase`.
    kBlame,   // `member` is to blame: it was told `command`, and `message` is what is wrong.
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

// What phases work with. They look at members and commands, and change them by orders alone.
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

// The job to change, and the orders to fill.
struct Turn {
  JobAtHand& job;
  Orders& orders;
  TimeMs now = 0;
};

// Invariant: between Begin() and a Next other than kWait the phase is at hand, and hears the
// answers to what it has ordered, each once. It knows no coordinator and no other phase.
class Phase {
 public:
  explicit Phase(const PhaseParts& parts) : parts_(parts) {}
  virtual ~Phase() = default;

  // Also again, after kAgain, or when servers were lost whose rows others have: from the start, but
  // for what the phase has come to.
  virtual Next Begin(const Turn& turn) = 0;
  // A command was done.
  virtual Next OnAnswer(const Answer& answer, const Turn&) {
    answers_[answer.from] = answer.done;
    return Next::Wait();
  }
  // It could not be done. True: the phase goes on all the same; else the member is to blame.
  virtual bool TakesRefusal(const Answer&) { return false; }
  // No command of the phase is open.
  virtual Next OnAllAnswered(const Turn& turn) = 0;
  virtual Next OnTick(const Turn&) { return Next::Wait(); }

 protected:
  static Command MakeCommand(CommandKind kind) {
    Command command;
    command.command = kind;
    return command;
  }

  // A server cannot read what the checkpoint holds, which no other process in its place could.
  bool IsOfDamagedFiles(const Answer& answer) const;
  std::string FaultOf(const Answer& answer) const;  // "server 0 (host-a 4711): disk full"

  const PhaseParts& parts_;
  std::map<PeerId, CommandDone> answers_;
};

// "2 servers and 1 worker"
std::string CountsOf(const Membership& members);

}  // namespace hdps
