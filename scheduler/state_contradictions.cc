// Checks that the parts of a written state agree with each other.
#include <glog/logging.h>

#include <algorithm>
#include <concepts>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "common/job/job_spec.h"
#include "common/protocol/message_frames.h"
#include "scheduler/members/key_value_store.h"
#include "scheduler/members/rendezvous.h"
#include "scheduler/members/scaling.h"
#include "scheduler/scheduler_state.h"

namespace hdps {
namespace {

// Far above every clock, view, command number or time; sums of a few such numbers do not overflow.
constexpr uint64_t kNumberMax = uint64_t{1} << 53;

template <std::integral Number>
bool IsPast(Number number) {
  return static_cast<uint64_t>(number) <= kNumberMax;  // A negative number is far beyond.
}
template <std::integral Number>
bool IsPast(const std::optional<Number>& number) {
  return !number || IsPast(*number);
}
bool ArePast(const JobState& job) {
  bool all = true;
  VisitFields(job, [&all](const char* name, const auto& field, Kept kept, auto...) {
    if (!kept.past) return;
    if constexpr (requires { IsPast(field); }) {
      all = all && IsPast(field);
    } else {
      LOG(FATAL) << name << " is no number";
    }
  });
  return all;
}

std::string NameOf(Role role, uint32_t rank) {
  return std::string(RoleName(role)) + " " + std::to_string(rank);
}

// Returns the rule that a recipient of the message would find broken; empty: none.
template <typename Message>
std::string BrokenRuleOf(const Message& message) {
  Message received;
  return DecodeMessage(EncodeMessage(message), &received).message();
}

// Checks that each process is one member at one reachable address, and a group's holders differ.
std::string InMembers(const View& view) {
  std::map<PeerId, std::pair<Role, uint32_t>> places;
  std::set<std::pair<PeerId, uint32_t>> holds;
  std::string what;
  const auto look = [&](Role role, const Member& member) {
    const auto [place, is_new] = places.try_emplace(member.peer, role, member.rank);
    if (role == Role::kWorker && !is_new) {
      what = NameOf(role, member.rank) + " has two places";
    } else if (place->second != std::pair(role, member.rank)) {
      what = NameOf(role, member.rank) + " has two ranks";
    } else if (role == Role::kServer && member.rank >= view.servers.size()) {
      what = NameOf(role, member.rank) + " has a rank beyond the servers";
    } else if (member.peer.value <= kSchedulerPeer.value) {
      what = NameOf(role, member.rank) + " is no member";
    } else if (const std::string wrong = WrongAddress(role, member.address); !wrong.empty()) {
      what = NameOf(role, member.rank) + ": " + wrong;
    }
  };
  const auto hold = [&](const Member& member, uint32_t group) {
    look(Role::kServer, member);
    if (!holds.emplace(member.peer, group).second) {
      what =
          NameOf(Role::kServer, member.rank) + " holds group " + std::to_string(group) + " twice";
    }
  };
  for (uint32_t g = 0; g < view.servers.size(); ++g) hold(view.servers[g], g);
  for (const GroupBackup& backup : view.backups) hold(backup.member, backup.group.value);
  for (const Member& worker : view.workers) look(Role::kWorker, worker);
  return what;
}

std::string InView(const View& view) {
  if (view.servers.empty() || view.workers.empty()) return "a view without servers or workers";
  // Checked before it is encoded as a message, which has no room for a longer address.
  if (std::string what = InMembers(view); !what.empty()) return what;
  if (std::string broken = BrokenRuleOf(view); !broken.empty()) return broken;
  if (view.view.value == 0 || !IsPast(view.view.value)) return "a view of no number";
  if (view.placed.value == 0 || view.placed > view.view || view.restarts >= view.view.value) {
    return "shards were placed, or the job has gone back, in a view that is still to come";
  }
  return "";
}

// Checks what JobPlan and the phases guarantee.
std::string InPlan(JobPhase phase, const JobPlan::State& plan) {
  const JobPosition& at = plan.position;
  if (!IsPast(at.clock) || !IsPast(at.epoch_start) || at.epoch_start > at.clock) {
    return "an epoch that began at step " + std::to_string(at.epoch_start) + " and is at step " +
           std::to_string(at.clock);
  }
  if (plan.saved < -1 || plan.saved > at.clock) return "a checkpoint of a step that is to come";
  const std::vector<JobStep>& due = plan.due;
  const bool in_order = std::ranges::adjacent_find(due, std::greater_equal()) == due.end();
  if (!in_order || (!due.empty() && due.front() == JobStep::kTrain)) {
    return "what is due is out of order";
  }
  const bool finishes = !due.empty() && due.back() == JobStep::kFinish;
  if (finishes != plan.ending || (plan.stopped_early && !plan.ending)) {
    return "an end that is not due";
  }
  if (phase < JobPhase::kTrain || phase > JobPhase::kFinish) return "";
  const auto step = static_cast<int>(phase) - static_cast<int>(JobPhase::kTrain);
  const JobStep next = due.empty() ? JobStep::kTrain : due.front();
  return step == static_cast<int>(next) ? "" : "a phase that is not due";
}

// Checks that the commands of a round go to workers of the view, each number once, and lead on.
std::string InOrders(const SchedulerState& state) {
  const JobState& job = state.job;
  if (job.phase != JobPhase::kTrain) return job.orders.empty() ? "" : "orders, and no training";
  const JobPosition& at = job.plan.position;
  std::set<std::pair<PeerId, CommandId>> numbers;
  for (const auto& [worker, command] : job.orders) {
    const std::string name = "an order to a worker";
    if (std::ranges::count(state.view.workers, worker, &Member::peer) == 0) {
      return name + ", who is no worker of the view";
    }
    const auto last = state.last_ids.find(worker);
    if (last == state.last_ids.end() || command.id.value > last->second) {
      return name + " has a number that was not given yet";
    }
    if (!numbers.emplace(worker, command.id).second) return name + " stands twice";
    if (command.until <= at.clock || command.until > JobPlan::kNoBoundary ||
        command.epoch != at.epoch || command.epoch_start != at.epoch_start) {
      return name + " is of another step";
    }
    if (std::string broken = BrokenRuleOf(command); !broken.empty()) return broken;
  }
  return "";
}

std::string InStore(const std::map<std::string, std::string>& entries) {
  if (entries.size() > KeyValueStore::kEntriesMax) return "more entries than the store has";
  for (const auto& [key, value] : entries) {
    if (key.size() > kTextBytesMax || value.size() > kTextBytesMax) return "too long an entry";
  }
  return "";
}

}  // namespace

std::string ContradictionIn(const SchedulerState& state) {
  const JobState& job = state.job;
  const bool wanted = state.wanted_servers > 0 && state.wanted_workers > 0;
  if (state.wanted_servers > kMembersMax || state.wanted_workers > kMembersMax ||
      (!wanted && state.wanted_servers + state.wanted_workers > 0)) {
    return "no cluster is wanted that has " + std::to_string(state.wanted_servers) +
           " servers and " + std::to_string(state.wanted_workers) + " workers";
  }
  for (const auto& [peer, id] : state.last_ids) {
    if (!IsPast(id)) return "a member has had more commands than there are";
  }
  if (!ArePast(job)) return "a time, a count or a step that cannot have been";
  if (std::string what = InView(state.view); !what.empty()) return what;
  if (std::string what = InPlan(job.phase, job.plan); !what.empty()) return what;
  if (std::string what = InOrders(state); !what.empty()) return what;
  return InStore(state.entries);
}

}  // namespace hdps
