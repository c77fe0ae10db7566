// A real SchedulerNode among members that follow a script, on a network that loses nothing.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/job/job_spec.h"
#include "common/platform/file_system.h"
#include "common/protocol/command_messages.h"
#include "common/protocol/membership_client.h"
#include "scheduler/scheduler_node.h"

namespace hdps {

// A server or worker: a real membership client, and answers that a test may replace.
struct ScriptedMember {
  ScriptedMember(const MembershipOptions& options, std::string name)
      : self(options.identity.self), role(options.role), called(std::move(name)), client(options) {}

  const PeerId self;
  const Role role;
  const std::string called;  // In the transcript: "worker a".
  MembershipClient client;
  bool cut_off = false;  // Neither hears nor is heard.
  bool deaf = false;     // Is heard, and hears nothing.
  bool mute = false;     // Beats, but answers no command.
  Clock clock = 0;
  std::optional<Command> training;
  bool pause = false;
};

struct ScriptedOptions {
  Job job;
  uint32_t num_servers = 1, num_workers = 2;
  Clock steps_per_epoch = 10;
  Resume resume = Resume::kAuto;
  bool members_return = true;
  bool with_members = true;  // All that the job needs, told no rank, called "server a", ...
};

// Invariant: one turn is 20 ms of simulated time: every node ticks, then all frames arrive in
// order.
class ScriptedCluster {
 public:
  ScriptedCluster(const ScriptedOptions& options, FileSystem& files);

  ScriptedMember& Add(Role role, const std::string& name, int32_t rank = -1,
                      const std::function<void(MembershipOptions&)>& change = {});
  ScriptedMember& member(const std::string& name);

  std::string boot = "one";  // Of the scheduler's machine.
  // Another process of the scheduler takes the place of the one at hand, within the run or not.
  void StartScheduler(bool same_run = true);

  void Turn();
  // The scheduler does nothing for so long; what members say meanwhile it hears when it is back.
  void StandStill(TimeMs ms);
  // Turns until `what` holds; false after `ms` of simulated time.
  bool RunUntil(const std::function<bool()>& what, TimeMs ms = 60'000);
  bool RunToTheEnd() {
    return RunUntil([this] { return node->done(); });
  }

  // One line a command that a member was given, in order: "worker a: train to 10, epoch 0 from 0".
  std::string transcript() const;
  bool Noticed(const std::string& part) const;
  std::string summary() const;  // summary.json, or "".

  // Replaces the answer to a command; none means the usual one.
  std::function<std::optional<CommandDone>(ScriptedMember&, const Command&)> answer;

  std::unique_ptr<SchedulerNode> node;
  std::vector<std::string> notices;
  TimeMs now = 1000;

 private:
  void DeliverToScheduler(ScriptedMember& member);
  void DeliverFromScheduler();
  void CarryOut(ScriptedMember& member, const Command& command);
  void Train(ScriptedMember& member);
  CommandDone Save(ScriptedMember& server, const Command& command);
  void Note(const ScriptedMember& member, const Command& command);

  const ScriptedOptions options_;
  FileSystem& files_;
  bool standing_still_ = false;
  std::vector<std::pair<PeerId, Frame>> unheard_;  // By the scheduler, while it stands still.
  std::vector<std::unique_ptr<ScriptedMember>> members_;
  std::vector<std::string> lines_;
};

// Four shards, two epochs, an evaluation after each; the best is not kept.
Job ScriptedJob();

}  // namespace hdps
