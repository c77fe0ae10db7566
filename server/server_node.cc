// Joins membership, commands and the service of rows into one node.
#include "server/server_node.h"

#include <glog/logging.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "common/base/byte_count.h"
#include "common/platform/failpoint.h"
#include "common/process/member_options.h"
#include "embedding/memory/optimizer.h"
#include "embedding/memory/row_policy.h"
#include "server/background_work.h"
#include "server/commanded_folder.h"
#include "server/row_service.h"
#include "server/server_memory_limit.h"

namespace hdps {
namespace {

constexpr size_t kWaitingRequestsMax = 4096;
constexpr ViewId kFirstView{1};

struct Request {
  PeerId from;
  Frame frame;
};

// What came of a command.
struct Outcome {
  CommandDone done;
  std::unique_ptr<ShardSet> loaded;  // kLoad: the shards from now on.
};

// Where every table lives and is updated, and what bounds this server's memory beside the rows.
void LogPlacement(const Job& job, uint32_t rank, size_t own_shards, size_t workers, int threads) {
  for (const TableSpec& table : job.tables) {
    LOG(INFO) << "table '" << table.name << "': device cpu, update device cpu, rule "
              << OptimizerName(table.optimizer) << ", dim " << table.dim << ", " << RowBytes(table)
              << " bytes a row with state, shards " << own_shards << " of " << job.cluster.shards;
  }
  const size_t each = workers * job.cluster.pushes_in_flight_max;
  const size_t ahead = workers * job.train.lookahead;
  LOG(INFO) << "server " << rank << ": " << threads << " threads; bounds for " << workers
            << " workers: " << each + ahead << " parked pulls + " << each << " held pushes + "
            << each << " ledger entries + " << each + ahead + 2 * workers
            << " key lists, each request at most " << (kFrameBytesMax >> 20) << " MiB; rows: "
            << (job.cluster.memory_limit > 0
                    ? "cluster.memory_limit less all else, the others on disk"
                    : "as many as the machine has memory for");
}

void LogRows(const CommandDone& done, const ServerMemoryLimit* memory) {
  const RowCounts& counts = done.counts;
  LOG(INFO) << done.rows << " rows, " << ShowByteCount(done.row_bytes) << " of memory; "
            << counts.admitted << " admitted, " << counts.refused << " gradients refused, "
            << counts.evicted << " evicted; process " << ShowByteCount(done.process_bytes)
            << " at most";
  if (memory == nullptr) return;
  LOG(INFO) << counts.on_disk << " rows on disk alone, " << counts.fetched
            << " came back from there; disk " << ShowByteCount(memory->disk().disk_bytes())
            << ", its memory " << ShowByteCount(memory->disk().memory_bytes());
}

}  // namespace

struct ServerNode::Impl {
  Impl(FileSystem& file_system, Executor& the_executor, const ServerNodeOptions& o)
      : files(file_system),
        executor(the_executor),
        options(o),
        job(*options.job),
        membership(MembershipOf(Role::kServer, options.identity, job)),
        rows(job, executor, options.identity.self, options.sabotage, options.sections),
        background(options.wake) {}

  void AfterMembership();
  void OnNewView();
  // A job's first view begins with no rows. One that is a restart makes the rows at hand worthless,
  // and in one that moves shards those that come are not here yet: nobody may touch them before
  // they are loaded.
  bool RowsCount() const { return !rows_missing && rows_restart == view->restarts; }
  void StartCommand(const Command& command);
  void Refuse(const Command& command, const std::string& why);
  void FinishCommand();
  Outcome RunLoad(const Command& command, const std::vector<ShardId>& ids);
  Outcome RunTakeShards(const Command& command);
  Outcome RunSave(const Command& command);
  Outcome RunDigest(const Command& command);
  // Answers `request` and those that came meanwhile. Where a disk may make them wait they run
  // beside the loop, one after the other: a server that waits for its disk is alive.
  void Serve(Request request);
  // Takes what has ended beside the loop, and begins what waits for it.
  void Advance();
  bool serving() const { return background.running() && !current.has_value(); }
  // Takes its answers; ends the job instead if rows could not be read or written: nobody hears
  // what they might have been.
  void FinishRequest();

  FileSystem& files;
  Executor& executor;
  const ServerNodeOptions options;
  const Job& job;

  MembershipClient membership;
  std::shared_ptr<const View> view;           // The last one `rows` was told.
  uint32_t rows_restart = 0;                  // View::restarts that the rows at hand belong to.
  bool rows_missing = false;                  // Of shards that have come to this server.
  std::unique_ptr<ServerMemoryLimit> memory;  // Null: unlimited.
  RowService rows;                            // Uses it.
  std::deque<Command> commands;               // Not begun; carried out one after the other.
  std::vector<Outgoing> answers;              // Of requests that have ended.
  std::deque<Request> requests;               // Came while one was being answered; each once.
  std::optional<Command> current;  // What `background` works on; none: a request, or nothing.
  Outcome done_command;            // Of the command, when it has ended.
  BackgroundWork background;       // Last: ends before what it works on.
};

// Does what the scheduler has said since the last call. Views too wait for the command at hand, as
// a view may let pulls and steps go on.
void ServerNode::Impl::AfterMembership() {
  for (Command& command : membership.TakeCommands()) commands.push_back(std::move(command));
  while (!membership.ended()) {
    if (current.has_value() && background.TakeEnd()) FinishCommand();
    if (background.running()) return;
    if (membership.view() != view) OnNewView();
    if (view == nullptr || commands.empty()) return;
    const Command command = std::move(commands.front());
    commands.pop_front();
    StartCommand(command);
  }
}

void ServerNode::Impl::OnNewView() {
  const std::shared_ptr<const View> next = membership.view();
  const std::vector<ShardId> own = next->shards.ShardsOf({membership.rank()});
  if (next->shards.num_shards() != job.cluster.shards) {
    return membership.Fail(3, "view " + std::to_string(next->view.value) + " has " +
                                  std::to_string(next->shards.num_shards()) +
                                  " shards, the job has " + std::to_string(job.cluster.shards));
  }
  if (view == nullptr) {
    LogPlacement(job, membership.rank(), own.size(), next->workers.size(), executor.threads());
    MemoryLimitOptions limits;
    limits.spill_folder = options.spill_folder;
    limits.rank = membership.rank();
    limits.host = options.identity.host;
    limits.own_shards = own.size();
    limits.num_workers = next->workers.size();
    limits.own_process = options.own_process;
    limits.expected_rows = options.expected_rows;
    Result<std::unique_ptr<ServerMemoryLimit>> made = ServerMemoryLimit::Make(job, limits, files);
    if (!made.ok()) return membership.Fail(2, made.status().message());
    memory = *std::move(made);
    rows.UseMemory(memory.get());
    rows_missing = next->view > kFirstView;
  } else if (next->restarts == view->restarts) {
    rows_missing = rows_missing || own != rows.shards().ids();
  } else {
    LOG(INFO) << "view " << next->view.value << ": the job goes back to a checkpoint";
    std::erase_if(commands, [&](const Command& command) { return command.view < next->view; });
    requests.clear();
    answers.clear();
    rows.DropRows();
  }
  view = next;
  rows.OnView(*view, own);
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
  const bool begins_anew = command.command == CommandKind::kLoad && command.path.empty();
  if (!begins_anew &&
      (command.command == CommandKind::kLoad || command.command == CommandKind::kSave)) {
    const Status sound = CheckCommandedFolder(command.path);
    if (!sound.ok()) return Refuse(command, sound.message());
  }
  HDPS_FAILPOINT("server.command.begun");
  // Who still wants his answer after the command will ask again.
  for (const Request& request : requests) rows.Postpone(request.from, request.frame);
  requests.clear();
  std::function<Outcome()> work;
  switch (command.command) {
    case CommandKind::kLoad:
      if (command.keep) {
        work = [this, command] { return RunTakeShards(command); };
        break;
      }
      rows.DropRows();
      work = [this, command, ids = rows.shards().ids()] { return RunLoad(command, ids); };
      break;
    case CommandKind::kSave:
      work = [this, command] { return RunSave(command); };
      break;
    case CommandKind::kDigest:
      work = [this, command] { return RunDigest(command); };
      break;
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
  background.Start(executor, [this, work = std::move(work)] { done_command = work(); });
}

void ServerNode::Impl::FinishCommand() {
  Outcome outcome = std::move(done_command);
  const CommandDone& done = outcome.done;
  const Command command = *std::exchange(current, std::nullopt);
  if (command.command == CommandKind::kLoad && (!command.keep || done.code == Code::kOk)) {
    rows.Reset(command.until, std::move(outcome.loaded));
    rows_restart = view->restarts;
    rows_missing = false;
    HDPS_FAILPOINT("server.load.taken");
  }
  if (done.code != Code::kOk) {
    LOG(WARNING) << "command " << done.id.value << ": " << done.message;
  } else if (command.command == CommandKind::kLoad) {
    const char* const how = command.keep ? "goes on" : "begins anew";
    LOG(INFO) << (command.path.empty() ? how : "loaded " + command.path) << " at clock "
              << command.until;
  }
  HDPS_FAILPOINT("server.command.before_answer");
  membership.Answer(done);
}

Outcome ServerNode::Impl::RunLoad(const Command& command, const std::vector<ShardId>& ids) {
  Outcome outcome;
  outcome.done.id = command.id;
  outcome.loaded = std::make_unique<ShardSet>(job, executor, ids, memory.get());
  const Status status =
      command.path.empty() ? Status() : outcome.loaded->Load(files, command.path, command.until);
  if (!status.ok()) {
    outcome.loaded.reset();  // Empty, not half full.
    outcome.loaded = std::make_unique<ShardSet>(job, executor, ids, memory.get());
    outcome.done.code = status.code();
    outcome.done.message = status.message();
  }
  return outcome;
}

Outcome ServerNode::Impl::RunTakeShards(const Command& command) {
  Outcome outcome;
  outcome.done.id = command.id;
  const Status status = rows.TakeShards(files, command);
  outcome.done.code = status.code();
  outcome.done.message = status.message();
  return outcome;
}

Outcome ServerNode::Impl::RunSave(const Command& command) {
  Outcome outcome;
  outcome.done.id = command.id;
  Result<std::vector<SavedFile>> saved =
      rows.shards().Save(files, command.path, command.until, command.since, command.shards);
  if (saved.ok()) {
    outcome.done.files = *std::move(saved);
    for (const SavedFile& file : outcome.done.files) outcome.done.rows += file.rows;
  } else {
    outcome.done.code = saved.status().code();
    outcome.done.message = saved.status().message();
  }
  return outcome;
}

Outcome ServerNode::Impl::RunDigest(const Command& command) {
  Outcome outcome;
  outcome.done.id = command.id;
  const Result<RowsDigest> digest = rows.shards().Digest();
  if (!digest.ok()) {
    outcome.done.code = digest.status().code();
    outcome.done.message = digest.status().message();
    return outcome;
  }
  outcome.done.digest[0] = digest->sum[0];
  outcome.done.digest[1] = digest->sum[1];
  outcome.done.rows = digest->rows;
  outcome.done.row_bytes = rows.shards().bytes();
  outcome.done.counts = rows.shards().counters();
  if (options.own_process) outcome.done.process_bytes = PeakResidentBytes(files);
  LogRows(outcome.done, memory.get());
  return outcome;
}

void ServerNode::Impl::Serve(Request request) {
  if (memory == nullptr) {
    rows.OnRequest(request.from, request.frame);
    return FinishRequest();
  }
  const auto is_worker = [&](const Member& worker) { return worker.peer == request.from; };
  if (serving() && !std::ranges::any_of(view->workers, is_worker)) return;
  const auto is_same = [&](const Request& waiting) {
    return waiting.from == request.from &&
           waiting.frame.header.request_id == request.frame.header.request_id;
  };
  if (const auto same = std::ranges::find_if(requests, is_same); same != requests.end()) {
    *same = std::move(request);
  } else if (requests.size() < kWaitingRequestsMax) {
    requests.push_back(std::move(request));
  }
  Advance();
}

void ServerNode::Impl::Advance() {
  while (true) {
    if (serving() && background.TakeEnd()) FinishRequest();
    AfterMembership();
    if (requests.empty() || background.running() || !commands.empty() || membership.ended()) return;
    background.Start(executor, [this, request = std::move(requests.front())] {
      rows.OnRequest(request.from, request.frame);
    });
    requests.pop_front();
  }
}

void ServerNode::Impl::FinishRequest() {
  std::vector<Outgoing> ready = rows.TakeOutgoing();
  const Status failure = rows.failure();
  if (!failure.ok()) return membership.Fail(3, failure.message());
  std::ranges::move(ready, std::back_inserter(answers));
}

ServerNode::ServerNode(FileSystem& files, Executor& executor, const ServerNodeOptions& options)
    : impl_(std::make_unique<Impl>(files, executor, options)) {}

ServerNode::~ServerNode() = default;

void ServerNode::OnFrame(PeerId from, Frame frame) {
  if (impl_->membership.OnFrame(from, frame)) return impl_->AfterMembership();
  if (impl_->serving()) return impl_->Serve({from, std::move(frame)});
  // While a command reads or replaces the rows nobody else may; the repeat will find us free.
  if (impl_->view == nullptr || !impl_->RowsCount() || impl_->background.running() ||
      impl_->membership.ended()) {
    return impl_->rows.Postpone(from, frame);
  }
  impl_->Serve({from, std::move(frame)});
}

void ServerNode::OnTick(TimeMs now) {
  impl_->Advance();
  if (impl_->view != nullptr && !impl_->serving()) {
    Heartbeat progress;
    progress.clock = impl_->rows.finished();
    progress.staleness_max = impl_->rows.counters().staleness_max;
    impl_->membership.Report(progress);
  }
  impl_->membership.OnTick(now);
  impl_->AfterMembership();
}

Output ServerNode::TakeOutput() {
  impl_->Advance();
  Output output = impl_->membership.TakeOutput();
  std::ranges::move(std::exchange(impl_->answers, {}), std::back_inserter(output.frames));
  if (impl_->serving()) return output;
  std::ranges::move(impl_->rows.TakeOutgoing(), std::back_inserter(output.frames));
  return output;
}

bool ServerNode::done() const { return impl_->membership.ended(); }
int ServerNode::exit_status() const { return impl_->membership.exit_status(); }
const std::string& ServerNode::exit_reason() const { return impl_->membership.reason(); }

void ServerNode::RequestStop(const std::string& reason) { impl_->membership.RequestStop(reason); }

const ServerCounters& ServerNode::counters() const { return impl_->rows.counters(); }

}  // namespace hdps
