// The layouts of the messages between the scheduler and its members, in the order of messages.fbs.
#include <cmath>
#include <map>

#include "common/metrics/metric.h"
#include "common/protocol/checkpoints/manifest_layouts.h"
#include "common/protocol/command_messages.h"
#include "common/protocol/membership_messages.h"
#include "common/protocol/message_codec.h"
#include "common/protocol/status_messages.h"
#include "common/protocol/tallies.h"
#include "common/protocol/tally_layouts.h"
#include "common/protocol/view.h"

namespace hdps {
namespace {

constexpr int32_t kExitStatusMax = 255;

void RequireExitStatus(int32_t exit_status, Rules& rules) {
  rules.Require(exit_status >= 0 && exit_status <= kExitStatusMax, "exit statuses are 0..255");
}

void RequireRanks(const std::vector<Member>& members, Rules& rules) {
  for (uint32_t i = 0; i < members.size(); ++i) {
    rules.Require(members[i].rank == i, "ranks are 0..n-1, in order");
  }
}

// A process that serves several groups has one rank, and no two processes have the same rank.
void RequireHolders(const View& view, Rules& rules) {
  std::map<uint32_t, PeerId> by_rank;
  const auto require = [&](const Member& member) {
    rules.Require(by_rank.try_emplace(member.rank, member.peer).first->second == member.peer,
                  "ranks of servers are their own");
  };
  for (const Member& server : view.servers) require(server);
  uint32_t group = 0;
  for (const GroupBackup& backup : view.backups) {
    require(backup.member);
    rules.Require(backup.group.value >= group && backup.group.value < view.servers.size(),
                  "backups stand in the order of their groups");
    group = backup.group.value;
  }
}

// The number of shards is a power of two and each has an owner among the servers. There may be no
// shards only if there are no servers.
void RequireShards(const ShardMap& shards, size_t num_servers, Rules& rules) {
  const std::vector<ServerId>& owner = shards.owner;
  if (num_servers == 0 && owner.empty()) return;
  rules.Require(!owner.empty() && (owner.size() & (owner.size() - 1)) == 0,
                "the number of shards is a power of two");
  for (const ServerId server : owner) {
    rules.Require(server.value < num_servers, "owners of shards are servers");
  }
}

}  // namespace

// ---- JoinRequest, JoinRefused, View, Heartbeat, HeartbeatAck.

template <>
struct Layout<JoinRequest> {
  using Table = wire::JoinRequest;
  static void Describe(auto& fields, auto& message) {
    fields.Enumerator(message.role, Role::kWorker);
    fields.Number(message.rank);
    fields.Name(message.address);
    fields.Number(message.job_digest);
    fields.Number(message.num_servers);
    fields.Number(message.num_workers);
    fields.Text(message.host);
    fields.Text(message.process);
    fields.Number(message.records);
  }
  static void Check(const JoinRequest& message, Rules& rules) {
    rules.Require(message.role != Role::kScheduler, "servers and workers join");
    rules.Require(message.rank >= -1, "a rank is -1 or more");
  }
};
HDPS_MESSAGE(JoinRequest);

template <>
struct Layout<JoinRefused> {
  using Table = wire::JoinRefused;
  static void Describe(auto& fields, auto& message) {
    fields.Number(message.exit_status);
    fields.Text(message.message);
    fields.Number(message.stands_by);
  }
  static void Check(const JoinRefused& message, Rules& rules) {
    RequireExitStatus(message.exit_status, rules);
  }
};
HDPS_MESSAGE(JoinRefused);

template <>
struct Layout<Member> {
  static void Describe(auto& fields, auto& member) {
    fields.Number(member.peer);
    fields.Number(member.rank);
    fields.Name(member.address);
  }
};

template <>
struct Layout<GroupBackup> {
  static void Describe(auto& fields, auto& backup) {
    fields.Number(backup.group);
    fields.Number(backup.member.peer);
    fields.Number(backup.member.rank);
    fields.Name(backup.member.address);
  }
};

template <>
struct Layout<View> {
  using Table = wire::View;
  static void Describe(auto& fields, auto& message) {
    fields.Number(message.view);
    fields.Tables(message.servers);
    fields.Tables(message.workers);
    fields.Numbers(message.shards.owner);
    fields.Number(message.restarts);
    fields.Number(message.placed);
    fields.Tables(message.backups);
    fields.Number(message.reign);
  }
  static void Check(const View& message, Rules& rules) {
    RequireHolders(message, rules);
    RequireRanks(message.workers, rules);
    RequireShards(message.shards, message.servers.size(), rules);
  }
};
HDPS_MESSAGE(View);

template <>
struct Layout<RowPlacesRequest> {
  using Table = wire::RowPlacesRequest;
  static void Describe(auto&, auto&) {}
};
HDPS_MESSAGE(RowPlacesRequest);

template <>
struct Layout<RowPlacesReply> {
  using Table = wire::RowPlacesReply;
  static void Describe(auto& fields, auto& message) {
    fields.Enumerator(message.code, Code::kCancelled);
    fields.Text(message.message);
    fields.Number(message.view);
    fields.Tables(message.servers);
    fields.Numbers(message.shards.owner);
  }
  static void Check(const RowPlacesReply& message, Rules& rules) {
    RequireShards(message.shards, message.servers.size(), rules);
  }
};
HDPS_MESSAGE(RowPlacesReply);

template <>
struct Layout<CacheTally> {
  static void Describe(auto& fields, auto& tally) {
    fields.Number(tally.lookups);
    fields.Number(tally.hits);
    fields.Number(tally.swaps);
    fields.Number(tally.bytes);
  }
};

template <>
struct Layout<CollectiveTally> {
  static void Describe(auto& fields, auto& tally) {
    fields.Number(tally.allreduce_calls);
    fields.Number(tally.allreduce_bytes);
    fields.Number(tally.reduce_scatter_calls);
    fields.Number(tally.reduce_scatter_bytes);
    fields.Number(tally.allgather_calls);
    fields.Number(tally.allgather_bytes);
    fields.Number(tally.state_bytes);
  }
};

template <>
struct Layout<SilentServer> {
  static void Describe(auto& fields, auto& server) {
    fields.Number(server.peer);
    fields.Number(server.for_ms);
  }
};

template <>
struct Layout<ShardLoad> {
  static void Describe(auto& fields, auto& load) {
    fields.Number(load.shard);
    fields.Number(load.busy_ns);
    fields.Number(load.rows);
    fields.Number(load.bytes);
  }
};

template <>
struct Layout<Heartbeat> {
  using Table = wire::Heartbeat;
  static void Describe(auto& fields, auto& message) {
    fields.Number(message.view);
    fields.Number(message.clock);
    fields.Number(message.examples);
    fields.Number(message.loss_sum);
    fields.Number(message.epoch_progress);
    fields.Number(message.staleness_max);
    fields.Table(message.cache);
    fields.Number(message.number);
    fields.Number(message.heard);
    fields.Text(message.trouble);
    fields.Tables(message.silent);
    fields.Table(message.activity);
    fields.Number(message.finished);
    fields.Number(message.wants_checkpoint);
    fields.Numbers(message.readings);
    fields.Tables(message.loads);
  }
  static void Check(const Heartbeat& message, Rules& rules) {
    rules.Require(message.clock >= 0 && message.wants_checkpoint >= 0, "clocks are not negative");
  }
};
HDPS_MESSAGE(Heartbeat);

template <>
struct Layout<HeartbeatAck> {
  using Table = wire::HeartbeatAck;
  static void Describe(auto& fields, auto& message) {
    fields.Number(message.view);
    fields.Number(message.number);
    fields.Number(message.time_ns);
    fields.Number(message.trace.trace);
    fields.Enumerator(message.trace.phase, TracePhase::kClose);
    fields.Number(message.trace.from);
    fields.Number(message.trace.until);
    fields.Number(message.place_empty);
  }
};
HDPS_MESSAGE(HeartbeatAck);

// ---- Command, CommandDone.

template <>
struct Layout<Command> {
  using Table = wire::Command;
  static void Describe(auto& fields, auto& message) {
    fields.Number(message.id);
    fields.Enumerator(message.command, CommandKind::kLoadAhead);
    fields.Number(message.until);
    fields.Number(message.epoch);
    fields.Number(message.epoch_start);
    fields.Name(message.path);
    fields.Numbers(message.shards);
    fields.Number(message.keep);
    fields.Tables(message.files);
    fields.Number(message.since);
    fields.Number(message.take);
    fields.Number(message.next);
    fields.Number(message.rate);
    fields.Name(message.eval_set);
    fields.Number(message.init);
    fields.Numbers(message.taken);
    fields.Numbers(message.last_steps);
    fields.Tables(message.offsets);
    fields.Number(message.steps_before);
    fields.Number(message.reign);
    fields.Number(message.begun);
  }
  static void Check(const Command& message, Rules& rules) {
    rules.Require(message.id.value > 0, "commands are numbered from 1");
    rules.Require(message.rate > 0 && message.rate <= 1, "learning rates stay or fall");
    rules.Require(message.until >= 0 && message.epoch_start >= 0 && message.since >= 0 &&
                      message.steps_before >= 0,
                  "clocks are not negative");
  }
};
HDPS_MESSAGE(Command);

template <>
struct Layout<NamedFigure> {
  static void Describe(auto& fields, auto& figure) {
    fields.Name(figure.name);
    fields.Number(figure.value);
  }
  static void Check(const NamedFigure& figure, Rules& rules) {
    rules.Require(IsFigureName(figure.name) && std::isfinite(figure.value),
                  "figures are finite, with names of letters, digits, _ and @");
  }
};

template <>
struct Layout<CommandDone> {
  using Table = wire::CommandDone;
  static void Describe(auto& fields, auto& message) {
    fields.Number(message.id);
    fields.Enumerator(message.code, Code::kCancelled);
    fields.Text(message.message);
    fields.Number(message.clock);
    fields.Number(message.end_of_epoch);
    fields.Number(message.examples);
    fields.Number(message.loss_sum);
    fields.Number(message.bad_rows);
    fields.Number(message.digest[0]);
    fields.Number(message.digest[1]);
    fields.Number(message.rows);
    fields.Number(message.row_bytes);
    fields.Tables(message.files);
    fields.Table(message.cache);
    fields.Number(message.counts.admitted);
    fields.Number(message.counts.refused);
    fields.Number(message.counts.evicted);
    fields.Number(message.counts.fetched);
    fields.Number(message.counts.on_disk);
    fields.Number(message.process_bytes);
    fields.Table(message.label_tally);
    fields.Number(message.dense_parameters);
    fields.Number(message.dense_rows);
    fields.Text(message.arithmetic);
    fields.Number(message.taken);
    fields.Number(message.more);
    fields.Number(message.weight_sum);
    fields.Table(message.collectives);
    fields.Tables(message.data_files);
    fields.Text(message.data_changes);
    fields.Tables(message.figures);
    fields.Tables(message.offsets);
    fields.Number(message.steps_again);
    fields.Number(message.examples_again);
    fields.Section(message.scores);
    fields.Section(message.labels);
    fields.Section(message.weights);
    fields.Section(message.groups);
  }
  static void Check(const CommandDone& message, Rules& rules) {
    rules.Require(message.clock >= 0, "clocks are not negative");
    rules.Require(message.scores.size() == message.labels.size() &&
                      message.scores.size() % sizeof(float) == 0,
                  "there is one label, a float, for each score");
    rules.Require(message.weights.size() % sizeof(float) == 0 &&
                      message.weights.size() <= message.scores.size(),
                  "weights are floats, at most one for each score");
    rules.Require(message.groups.size() % sizeof(Key) == 0 &&
                      message.groups.size() / 2 <= message.scores.size(),
                  "groups are keys, at most one for each score");
    rules.Require(message.figures.size() <= kFiguresMax, "there are at most 64 figures");
  }
};
HDPS_MESSAGE(CommandDone);

// ---- StopRequest, LeaveRequest, Abort.

template <>
struct Layout<StopRequest> {
  using Table = wire::StopRequest;
  static void Describe(auto& fields, auto& message) { fields.Text(message.reason); }
};
HDPS_MESSAGE(StopRequest);

template <>
struct Layout<LeaveRequest> {
  using Table = wire::LeaveRequest;
  static void Describe(auto& fields, auto& message) {
    fields.Text(message.reason);
    fields.Number(message.goes);
  }
};
HDPS_MESSAGE(LeaveRequest);

template <>
struct Layout<Abort> {
  using Table = wire::Abort;
  static void Describe(auto& fields, auto& message) {
    fields.Number(message.exit_status);
    fields.Text(message.message);
    fields.Number(message.member_only);
    fields.Number(message.reign);
  }
  static void Check(const Abort& message, Rules& rules) {
    RequireExitStatus(message.exit_status, rules);
  }
};
HDPS_MESSAGE(Abort);

}  // namespace hdps
