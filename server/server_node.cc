// Joins membership, commands and the row service into one node.
#include "server/server_node.h"

#include <glog/logging.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/platform/failpoint.h"
#include "common/process/member_options.h"
#include "common/protocol/membership_messages.h"
#include "common/protocol/message_frames.h"
#include "common/telemetry/process_meters.h"
#include "server/background_work.h"
#include "server/checkpoint_writer.h"
#include "server/groups/heard_members.h"
#include "server/groups/hosted_groups.h"
#include "server/groups/moves_ahead.h"
#include "server/groups/refusal.h"
#include "server/groups/rows_command.h"
#include "server/groups/waiting_requests.h"
#include "server/server_log.h"
#include "server/server_memory_limit.h"
#include "server/watch/activity_watch.h"
#include "server/watch/server_meters.h"

namespace hdps {
namespace {
constexpr ViewId kFirstView{1};

NodeIdentity IdentityOf(const ServerNodeOptions& options) {
  NodeIdentity identity = options.identity;
  identity.records = identity.records || options.order.recorder != nullptr;
  return identity;
}

}  // namespace

struct ServerNode::Impl {
  Impl(FileSystem& file_system, Executor& the_executor, const ServerNodeOptions& o)
      : files(file_system),
        executor(the_executor),
        options(o),
        job(*options.job),
        membership(MembershipOf(Role::kServer, IdentityOf(o), job)),
        meters(job, o.clock, o.recorder),
        groups(job, executor, o.identity.self, o.sabotage, o.sections, o.guests_read, meters,
               o.order),
        ahead(files, executor, options.wake),
        writer(files, o.file_writes != nullptr ? *o.file_writes : executor, options.wake, meters),
        background(options.wake) {}

  void AfterMembership();
  void OnNewView();
  // Sets up the memory limit of this server, once its shards are known. False: it cannot be kept.
  bool BeginMemory(const View& first);
  // Returns whether the rows may be used. A job's first view begins without rows. A restart makes
  // the present rows worthless. If shards moved here, their rows must be loaded first.
  bool RowsAreValid() const { return !rows_missing && rows_restart == view->restarts; }
  void StartCommand(const Command& command);
  void Refuse(const Command& command, const std::string& why);
  void FinishCommand();
  // Refuses a request that cannot be served now.
  void Postpone(PeerId from, const Frame& frame);
  // Queues and answers requests. Under a memory limit they may wait for the disk, so they run
  // beside the loop, one after the other, and the server's loop stays alive.
  void Serve(ServerRequestFrame request);
  // Finishes what has ended beside the loop, and starts what waits for it.
  void Advance();
  // Returns the present activity; `activity_watch` adds since when.
  Activity CurrentActivity() const;
  uint64_t Done() const;  // A counter of progress.
  // While something else uses the rows they are those of before.
  const std::vector<ShardLoad>& Loads();
  bool serving() const { return background.running() && !current.has_value(); }
  // Sends the answers of the ended request. If rows could not be read or written it ends this
  // server instead, because the answers might be wrong.
  void FinishRequest();

  FileSystem& files;
  Executor& executor;
  const ServerNodeOptions options;
  const Job& job;

  MembershipClient membership;
  std::shared_ptr<const View> view;  // The last view `groups` was given.
  HeardMembers heard;                // Members of `view`, and a few frames of others.
  // View::restarts of the view in which the present rows were loaded.
  uint32_t rows_restart = 0;
  bool rows_missing = false;                  // Rows of shards that may have moved to this server.
  std::unique_ptr<ServerMemoryLimit> memory;  // Null: unlimited.
  ServerMeters meters;
  std::vector<ShardLoad> loads;    // As told last.
  HostedGroups groups;             // Uses `memory` and `meters`.
  uint64_t dropped = 0;            // Frames of groups that are not here, or not read.
  std::deque<Command> commands;    // Not begun; carried out one after the other.
  std::vector<Outgoing> answers;   // Answers of ended requests.
  WaitingRequests requests{4096};  // Frames, at most.
  std::optional<Command> current;  // The command that runs in `background`, if any.
  int64_t current_begun_ns = 0;
  CommandOutcome done_command;  // Result of the command, once it has ended.
  MovesAhead ahead;             // Rows that move while training goes on.
  ArrivedShards arrived;        // Those for the command that runs.
  CheckpointWriter writer;      // Writes the copies of saves.
  uint64_t begun = 0;           // Pieces of work given to `background`.
  ActivityWatch activity_watch;
  BackgroundWork background;  // Last: ends before what it works on.
};

// Takes the scheduler's messages. New views, which may let pulls go on, wait while a command runs.
void ServerNode::Impl::AfterMembership() {
  for (Command& command : membership.TakeCommands()) commands.push_back(std::move(command));
  while (!membership.ended()) {
    if (current.has_value() && background.TakeEnd()) FinishCommand();
    if (const std::optional<CommandDone> saved = writer.TakeAnswer()) membership.Answer(*saved);
    ahead.Advance(background.running() || view == nullptr || !RowsAreValid() ? nullptr : &groups);
    while (const std::optional<CommandDone> done = ahead.TakeAnswer()) membership.Answer(*done);
    if (background.running()) return;
    if (membership.view() != view) OnNewView();
    if (view == nullptr || commands.empty()) return;
    if (commands.front().command == CommandKind::kSave && writer.running()) return;
    const Command command = std::move(commands.front());
    commands.pop_front();
    StartCommand(command);
  }
}

bool ServerNode::Impl::BeginMemory(const View& first) {
  size_t own_shards = 0;
  for (const ServerId id : groups.OwnIn(first)) own_shards += first.shards.ShardsOf(id).size();
  LogPlacement(job, membership.rank(), own_shards, first.workers.size(), executor.threads());
  const MemoryLimitOptions limits{.spill_folder = options.spill_folder,
                                  .rank = membership.rank(),
                                  .host = options.identity.host,
                                  .own_shards = own_shards,
                                  .num_workers = first.workers.size(),
                                  .own_process = options.own_process,
                                  .expected_rows = options.expected_rows};
  Result<std::unique_ptr<ServerMemoryLimit>> made = ServerMemoryLimit::Make(job, limits, files);
  if (!made.ok()) membership.Fail(made.status());
  if (!made.ok()) return false;
  memory = *std::move(made);
  groups.UseMemory(memory.get());
  return true;
}

void ServerNode::Impl::OnNewView() {
  const std::shared_ptr<const View> next = membership.view();
  if (next->shards.num_shards() != job.cluster.shards) {
    return membership.Fail(3, "view " + std::to_string(next->view.value) + " has " +
                                  std::to_string(next->shards.num_shards()) +
                                  " shards, the job has " + std::to_string(job.cluster.shards));
  }
  if (view == nullptr) {
    if (!BeginMemory(*next)) return;
    rows_missing = next->placed > kFirstView;
  } else if (next->restarts == view->restarts) {
    if (next->placed == view->placed) ahead.Drop();  // Somebody was lost: the move is given up.
    rows_missing = rows_missing || next->placed != view->placed;
  } else {
    LOG(INFO) << "view " << next->view.value << ": the job goes back to a checkpoint";
    std::erase_if(commands, [&](const Command& command) { return command.view < next->view; });
    requests.TakeAll();
    answers.clear();
    ahead.Drop();
    groups.DropRows();
  }
  view = next;
  heard.OnView(*view);
  groups.OnView(*view);
  HDPS_FAILPOINT("server.view.entered");
  FinishRequest();
}

void ServerNode::Impl::Refuse(const Command& command, const std::string& why) {
  CommandDone done;
  done.id = command.id;
  done.code = Code::kInvalidArgument;
  done.message = why;
  LOG(WARNING) << "refused a command: " << why;
  membership.Answer(done);
}

void ServerNode::Impl::StartCommand(const Command& command) {
  CHECK(!current.has_value() && !background.running());
  const Status sound = CheckCommand(command, files, options.sabotage.saves_over);
  if (!sound.ok()) return Refuse(command, sound.message());
  HDPS_FAILPOINT("server.command.begun");
  if (command.command == CommandKind::kSaveAhead || command.command == CommandKind::kLoadAhead) {
    if (memory != nullptr) return Refuse(command, "rows do not move ahead under a memory limit");
    return ahead.Take(command);
  }
  // Workers that still want an answer after the command ask again.
  for (const auto& [from, frame] : requests.TakeAll()) Postpone(from, frame);
  if (command.command == CommandKind::kLoad && !command.keep) groups.DropRows();
  switch (command.command) {
    case CommandKind::kLoad:
    case CommandKind::kSave:
    case CommandKind::kDigest:
    case CommandKind::kEvict:
      break;
    case CommandKind::kAwaitSaved:
      return writer.Await(command);
    case CommandKind::kFinish: {
      HDPS_FAILPOINT("server.finish.taken");
      CommandDone done;
      done.id = command.id;
      return membership.Answer(done);
    }
    default:
      return Refuse(command, "a server does not carry out command " +
                                 std::to_string(static_cast<int>(command.command)));
  }
  current = command;
  current_begun_ns = meters.NowNs();
  ++begun;
  if (command.command == CommandKind::kLoad) arrived = ahead.TakeArrived();
  background.Start(executor, [this, command] {
    done_command = RunOnRows(command, groups, files, arrived);
    arrived.clear();
  });
}

void ServerNode::Impl::FinishCommand() {
  CommandOutcome outcome = std::move(done_command);
  CommandDone& done = outcome.done;
  CHECK(current.has_value());
  const Command command = *std::exchange(current, std::nullopt);
  if (command.command == CommandKind::kLoad && (!command.keep || done.code == Code::kOk)) {
    done.clock = groups.Reset(command.until, std::move(outcome.loaded));
    rows_restart = view->restarts;
    rows_missing = false;
    HDPS_FAILPOINT("server.load.taken");
  }
  LogEnd(command, done);
  if (command.command == CommandKind::kDigest && done.code == Code::kOk) {
    if (options.own_process) done.process_bytes = PeakResidentBytes(files);
    LogRows(done, memory.get());
  }
  if (done.taken) {
    writer.Start(command, options.sabotage.saves_over ? ViewId() : command.view,
                 std::move(outcome.taken), current_begun_ns);
  }
  if (command.command == CommandKind::kSave) meters.CountSave(command, done, current_begun_ns);
  HDPS_FAILPOINT("server.command.before_answer");
  membership.Answer(done);
}

void ServerNode::Impl::Postpone(PeerId from, const Frame& frame) {
  if (ShardGroup* group = groups.Of(frame); group != nullptr) return group->Postpone(from, frame);
  ++dropped;
  const Status why(Code::kUnavailable, "this server is not ready for requests of view " +
                                           std::to_string(frame.header.view));
  std::optional<Frame> refusal = RefusalOf(frame, why, 0);
  if (!refusal) return;
  refusal->header.view = view == nullptr ? 0 : view->view.value;
  answers.push_back({from, *std::move(refusal)});
}

void ServerNode::Impl::Serve(ServerRequestFrame request) {
  ShardGroup* const group = groups.Of(request.frame);
  if (group == nullptr) return Postpone(request.from, request.frame);
  if (memory == nullptr) {
    group->OnFrame(request.from, request.frame);
    return FinishRequest();
  }
  if (serving() && !heard.Has(request.from)) return;
  requests.Add(std::move(request));
  Advance();
}

void ServerNode::Impl::Advance() {
  while (true) {
    if (serving() && background.TakeEnd()) FinishRequest();
    AfterMembership();
    if (requests.empty() || background.running() || !commands.empty() || membership.ended()) return;
    const ServerRequestFrame request = requests.Take();
    ShardGroup* const group = groups.Of(request.frame);
    if (group == nullptr) {  // The group has left this server.
      Postpone(request.from, request.frame);
      continue;
    }
    ++begun;
    background.Start(executor, [group, request] { group->OnFrame(request.from, request.frame); });
  }
}

void ServerNode::Impl::FinishRequest() {
  std::vector<Outgoing> ready = groups.TakeOutgoing();
  const Status failure = groups.failure();
  if (!failure.ok()) return membership.FailAlone(failure.message());
  std::ranges::move(ready, std::back_inserter(answers));
}

Activity ServerNode::Impl::CurrentActivity() const {
  return ActivityOf(current ? &*current : nullptr, background.running(),
                    view == nullptr ? std::vector<PeerId>() : groups.WaitsFor(),
                    writer.running() ? writer.folder() : "");
}

const std::vector<ShardLoad>& ServerNode::Impl::Loads() {
  if (!background.running()) loads = groups.Loads();
  return loads;
}

uint64_t ServerNode::Impl::Done() const {
  return background.running() ? begun : begun + static_cast<uint64_t>(groups.finished());
}

ServerNode::ServerNode(FileSystem& files, Executor& executor, const ServerNodeOptions& options)
    : impl_(std::make_unique<Impl>(files, executor, options)) {
  if (options.recorder != nullptr) impl_->membership.UseRecorder(*options.recorder);
  if (options.clock != nullptr) impl_->membership.ReportReadings([this] { return ReadFigures(); });
  impl_->membership.ReportLoads([this] { return impl_->Loads(); });
}
ServerNode::~ServerNode() {
  // Lets the work beside the loop end.
  if (impl_->memory != nullptr) impl_->memory->disk().StopWaiting();
}

void ServerNode::OnFrame(PeerId from, Frame frame) {
  if (impl_->membership.OnFrame(from, frame)) return impl_->AfterMembership();
  if (!impl_->heard.Hears(from)) {
    ++impl_->dropped;
    return;
  }
  if (frame.header.kind == static_cast<uint16_t>(MessageKind::kProbe)) {
    Frame ack = EncodeMessage(ProbeAck());
    ack.header.sender = impl_->options.identity.self.value;
    return impl_->answers.push_back({from, std::move(ack)});
  }
  if (impl_->serving()) return impl_->Serve({from, std::move(frame)});
  // Nothing else may touch the rows while a command reads or replaces them; the worker asks again
  // later.
  if (impl_->view == nullptr || !impl_->RowsAreValid() || impl_->background.running() ||
      impl_->membership.ended()) {
    return impl_->Postpone(from, frame);
  }
  impl_->Serve({from, std::move(frame)});
}

void ServerNode::OnTick(TimeMs now) {
  impl_->heard.OnTick();
  impl_->Advance();
  if (impl_->view != nullptr && !impl_->serving()) {
    Heartbeat progress;
    progress.clock = impl_->groups.finished();
    progress.staleness_max = counters().staleness_max;
    impl_->membership.Report(progress);
    if (impl_->RowsAreValid() && !impl_->background.running()) impl_->groups.OnTick(now);
  }
  if (impl_->memory != nullptr) impl_->membership.ReportTrouble(impl_->memory->trouble());
  impl_->membership.ReportActivity(
      impl_->activity_watch.At(impl_->CurrentActivity(), impl_->Done(), now));
  impl_->membership.OnTick(now);
  impl_->AfterMembership();
}

Output ServerNode::TakeOutput() {
  impl_->Advance();
  Output output = impl_->membership.TakeOutput();
  std::ranges::move(std::exchange(impl_->answers, {}), std::back_inserter(output.frames));
  if (impl_->serving()) return output;
  std::ranges::move(impl_->groups.TakeOutgoing(), std::back_inserter(output.frames));
  return output;
}

bool ServerNode::done() const { return impl_->membership.ended(); }
int ServerNode::exit_status() const { return impl_->membership.exit_status(); }
const std::string& ServerNode::exit_reason() const { return impl_->membership.reason(); }
void ServerNode::RequestStop(const std::string& reason) { impl_->membership.RequestStop(reason); }
void ServerNode::RequestLeave(const std::string& reason, TimeMs within_ms) {
  impl_->membership.RequestLeave(reason, within_ms);
}
ServerCounters ServerNode::counters() const {
  ServerCounters counters = impl_->groups.counters();
  counters.dropped += impl_->dropped;
  return counters;
}

Readings ServerNode::ReadFigures() {
  if (!impl_->background.running()) impl_->groups.CountInMeters();
  if (impl_->options.own_process)
    SetProcess(ReadProcessUsage(impl_->files), &impl_->meters.meters());
  const bool waits = impl_->memory != nullptr && !impl_->memory->trouble().empty();
  return impl_->meters.ReadWhile(waits, impl_->membership.refused_orders());
}
bool ServerNode::joined() const { return impl_->membership.view() != nullptr; }
uint32_t ServerNode::rank() const { return joined() ? impl_->membership.rank() : 0; }
std::optional<Result<RowsDigest>> ServerNode::DigestOf(ServerId group) const {
  return impl_->groups.DigestOf(group);
}

}  // namespace hdps
