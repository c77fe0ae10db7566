// Fuzzes the scheduler and a server as state machines in the middle of a job, and the state that a
// scheduler finds on disk.
#include <glog/logging.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/platform/executor.h"
#include "scheduler/scheduler_node.h"
#include "scheduler/scheduler_state.h"
#include "server/server_node.h"
#include "tests/fuzz/conversation.h"

namespace hdps::fuzz {
namespace {

constexpr uint8_t kModes = 3;
Mode ModeOf(uint8_t byte) {
  const Mode modes[kModes] = {Mode::kSync, Mode::kSsp, Mode::kAsync};
  return modes[byte % kModes];
}

// Recorded once for each mode.
const Conversation& Recorded(Role role, Mode mode) {
  static auto& all = *new std::map<std::pair<Role, Mode>, Conversation>;
  const auto found = all.find({role, mode});
  if (found != all.end()) return found->second;
  return all[{role, mode}] = Record(role, mode);
}

Result<std::unique_ptr<SchedulerNode>> NewScheduler(Mode mode, FileSystem& files) {
  const sim::ClusterOptions options = ClusterOf(mode);
  SchedulerOptions scheduler;
  scheduler.job = sim::JobOf(options);
  scheduler.out = sim::kOut;
  scheduler.num_servers = options.num_servers;
  scheduler.num_workers = options.num_workers;
  scheduler.command_retry_ms = 100;
  return SchedulerNode::Make(scheduler, {}, files);
}

Verdict RunScheduler(std::string_view bytes) {
  Input input(bytes);
  const Mode mode = ModeOf(input.Take());
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  const auto node = NewScheduler(mode, *files);
  CHECK(node.ok()) << node.status().message();
  return Converse(Recorded(Role::kScheduler, mode), node->get(), &input);
}

Verdict RunServer(std::string_view bytes) {
  Input input(bytes);
  const Mode mode = ModeOf(input.Take());
  const Conversation& conversation = Recorded(Role::kServer, mode);
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  const std::unique_ptr<Executor> executor = NewInlineExecutor();
  ServerNodeOptions options;
  options.job = sim::JobOf(ClusterOf(mode));
  options.identity.self = conversation.self;
  options.identity.scheduler_address = sim::kSchedulerAddress;
  options.identity.own_address = "ipc:///sim/server_0";
  options.identity.rank = 0;
  ServerNode node(*files, *executor, options);
  return Converse(conversation, &node, &input);
}

// A state that is read is written again unchanged. A scheduler starts with it, waits for its
// members, and ends with a message.
Verdict RunState(std::string_view bytes) {
  const std::string path = SchedulerStatePath(sim::kOut);
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  PutFile(*files, path, bytes);
  const Result<std::optional<SchedulerState>> state = ReadSchedulerState(*files, sim::kOut);
  if (state.ok()) {
    CHECK(state->has_value());
    CHECK(files->MakeDirectories("again").ok() && files->MakeDirectories("again2").ok());
    CHECK(WriteSchedulerState(*files, "again", **state).ok());
    const auto again = ReadSchedulerState(*files, "again");
    CHECK(again.ok()) << again.status().message();
    CHECK(WriteSchedulerState(*files, "again2", **again).ok());
    const auto text = [&](const std::string& out) {
      return *ReadWholeFile(*files, SchedulerStatePath(out), 1 << 24);
    };
    CHECK(text("again") == text("again2"));
  }
  const auto node = NewScheduler(Mode::kSync, *files);
  for (TimeMs now = 0; node.ok() && now < 200'000 && !(*node)->done(); now += 2000) {
    (*node)->OnTick(now);
    CHECK_LE((*node)->TakeOutput().frames.size(), 200u);
  }
  return state.ok() ? Verdict::kAccepted : Refused(state.status(), Code::kCorruption);
}

// Returns the state on disk when a cluster's scheduler was first seen in each phase.
std::vector<std::string> StateSeeds() {
  std::map<JobPhase, std::string> seeds;
  for (TimeMs until = 10; until <= 500; until += 10) {
    const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
    sim::Cluster cluster(ClusterOf(Mode::kSync), files.get());
    cluster.Run(until);
    const auto state = ReadSchedulerState(*files, sim::kOut);
    CHECK(state.ok()) << state.status().message();
    if (!state->has_value()) continue;
    seeds.try_emplace((*state)->job.phase,
                      *ReadWholeFile(*files, SchedulerStatePath(sim::kOut), 1 << 24));
  }
  std::vector<std::string> texts;
  for (auto& [phase, text] : seeds) texts.push_back(std::move(text));
  return texts;
}

const AddTarget scheduler({"scheduler", RunScheduler, ConversationSeeds});
const AddTarget server({"server", RunServer, ConversationSeeds});
const AddTarget state({"scheduler_state", RunState, StateSeeds});

}  // namespace
}  // namespace hdps::fuzz
