// Runs a real SchedulerNode among scripted members, on a network that loses nothing.
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

// A server or worker: a real membership client, with replies that a test may replace.
struct ScriptedMember {
  ScriptedMember(const MembershipOptions& options, std::string name)
      : self(options.identity.self), role(options.role), called(std::move(name)), client(options) {}

  const PeerId self;
  const Role role;
  const std::string called;  // Name in the transcript: "worker a".
  MembershipClient client;
  bool cut_off = false;  // No messages pass in either direction.
  bool deaf = false;     // Receives no messages, but sends.
  bool mute = false;     // Sends heartbeats, but answers no command.
  Clock clock = 0;
  std::optional<Command> training;
  Clock trains_from = 0;  // Its clock when the training began.
  bool pause = false;
  // Of a worker with a program of its own: at which clock that has no more examples, if ever, and
  // at which it asks for a checkpoint; 0: never.
  std::optional<Clock> finishes_at;
  Clock wants_checkpoint = 0;
};

struct ScriptedOptions {
  Job job;
  uint32_t num_servers = 1, num_workers = 2;
  Clock steps_per_epoch = 10;
  Resume resume = Resume::kAuto;
  bool members_return = true;
  bool guests_read = false;
  // The job reads a topic, of which worker r has partition r, from offset 1000 (r + 1) on, and
  // takes a message of it in each step.
  bool reads_topic = false;
  std::shared_ptr<Published<JobPicture>> pictures = nullptr;
  // Starts all members that the job needs, without ranks, called "server a", ...
  bool with_members = true;
};

// A scheduler and its scripted members.
//
// Invariant: a turn is 20 ms of simulated time: every node ticks, then all frames arrive in order.
class ScriptedCluster {
 public:
  ScriptedCluster(const ScriptedOptions& options, FileSystem& files);

  ScriptedMember& Add(Role role, const std::string& name, int32_t rank = -1,
                      const std::function<void(MembershipOptions&)>& change = {});
  ScriptedMember& member(const std::string& name);

  std::string boot = "one";  // Boot id of the scheduler's machine.
  // Replaces the scheduler's process by another, within the same run or not.
  void StartScheduler(bool same_run = true);

  void Turn();
  // Stops the scheduler for `ms`. It receives the messages of this time when it continues.
  void StandStill(TimeMs ms);
  // Turns until `what` is true; returns false after `ms` of simulated time.
  bool RunUntil(const std::function<bool()>& what, TimeMs ms = 60'000);
  bool RunToTheEnd() {
    return RunUntil([this] { return node->done(); });
  }

  // Returns a line for each command to a member, in order: "worker a: train to 10, epoch 0 from 0".
  std::string transcript() const;
  bool Noticed(const std::string& part) const;
  std::string summary() const;  // Returns summary.json, or "" if there is none.

  // Replaces the answer to a command; nothing means the usual answer.
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
  // Frames that arrived while the scheduler stands still.
  std::vector<std::pair<PeerId, Frame>> unheard_;
  std::vector<std::unique_ptr<ScriptedMember>> members_;
  std::map<uint32_t, Clock> reached_;  // By rank: where the worker in that place is.
  std::vector<std::string> lines_;
};

// Returns a job with four shards and two epochs, each with an evaluation; it does not keep the best
// checkpoint.
Job ScriptedJob();

}  // namespace hdps
