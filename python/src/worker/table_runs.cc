// Binds what makes table workers: a cluster within this process, and a place in a running job.
#include <pybind11/stl.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/job/job_facts.h"
#include "common/job/job_file.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"
#include "common/process/command_line.h"
#include "python/src/arguments.h"
#include "python/src/bindings.h"
#include "python/src/entry.h"
#include "python/src/only_run.h"
#include "python/src/status.h"
#include "python/src/worker/table_worker.h"
#include "tools/tables/join_tables.h"
#include "tools/tables/local_tables.h"
#include "tools/training.h"

namespace hdps::python {
namespace py = pybind11;
namespace {

using WorkerPointer = std::unique_ptr<HeldWorker, DeleteUnlessForked<HeldWorker>>;

// A job in this process.
//
// Invariant: it goes on until each of its workers has left.
class TablesHere {
 public:
  explicit TablesHere(std::shared_ptr<WaitingLines> lines) : lines_(std::move(lines)) {}

  Status Start(const TrainingRequest& request, std::vector<TableWorkerOptions> workers) {
    HDPS_ASSIGN_OR_RETURN(run_, PrepareRun(request, ModelOf::kProgram, *files_));
    left_ = request.workers;
    HDPS_ASSIGN_OR_RETURN(tables_,
                          LocalTables::Start(run_.options, std::move(workers), *files_, *clock_));
    return {};
  }
  TableWorker& worker(uint32_t rank) { return tables_->worker(rank).worker(); }
  Status Leave(uint32_t rank, const Status& failure) {
    ProcessEnd end = tables_->worker(rank).Leave(failure);
    if (--left_ == 0) {
      end = tables_->Close();
      LogToTerminal();
    }
    return StatusOf(end);
  }

 private:
  const OnlyRun only_;
  const std::shared_ptr<WaitingLines> lines_;  // The run writes there.
  const std::unique_ptr<FileSystem> files_ = NewPosixFileSystem();
  const std::unique_ptr<MonotonicClock> clock_ = NewSystemClock();
  PreparedRun run_;
  std::unique_ptr<LocalTables> tables_;
  std::atomic<uint32_t> left_ = 0;  // Workers that have not left.
};

class SeatHere : public TableSeat {
 public:
  SeatHere(std::shared_ptr<TablesHere> tables, uint32_t rank)
      : tables_(std::move(tables)), rank_(rank) {}
  TableWorker& worker() override { return tables_->worker(rank_); }
  Status Leave(const Status& failure) override { return tables_->Leave(rank_, failure); }

 private:
  const std::shared_ptr<TablesHere> tables_;
  const uint32_t rank_;
};

// A place in a running job.
class JoinedSeat : public TableSeat {
 public:
  explicit JoinedSeat(std::unique_ptr<JoinedTables> joined) : joined_(std::move(joined)) {}
  TableWorker& worker() override { return joined_->process().worker(); }
  Status Leave(const Status& failure) override {
    return StatusOf(joined_->process().Leave(failure));
  }

 private:
  const std::unique_ptr<JoinedTables> joined_;
};

TableWorkerOptions OptionsOf(ProgramCalls* calls) {
  TableWorkerOptions options;
  options.state = [calls] { return calls->State(); };
  options.give_up = [calls] { return calls->GiveUp(); };
  return options;
}

std::vector<WorkerPointer> Local(const std::shared_ptr<HeldJob>& given, const py::object& out,
                                 uint32_t servers, uint32_t workers, const std::string& resume,
                                 const py::object& state, int threads, const py::object& show,
                                 const py::dict& sets) {
  const std::shared_ptr<HeldJob> job = sets.empty() ? given : WithSets(*given, sets);
  if (!IsTablesJob(job->job)) {
    RaiseMistake(
        "local(): the job's model.type is not \"tables\"; hdps.train() trains a model of "
        "hdps, and a model of your own needs \"type\": \"tables\"");
  }
  RequireThreads(threads);
  const auto lines = std::make_shared<WaitingLines>(show);
  TrainingRequest request;
  request.job = job->text;
  request.overrides = job->overrides;
  request.out = PathOf(out);
  request.workers = workers;
  request.servers = servers;
  request.threads = threads;
  request.resume = ValueOf(ReadResume(resume));
  request.voice = lines->Listener();
  RefuseFork();
  const auto here = std::make_shared<TablesHere>(lines);
  std::vector<std::unique_ptr<ProgramCalls>> calls(workers);
  std::vector<TableWorkerOptions> options;
  for (std::unique_ptr<ProgramCalls>& each : calls) {
    each = std::make_unique<ProgramCalls>();
    each->SetState(state);
    options.push_back(OptionsOf(each.get()));
  }
  const Status started = InLibrary([&] {
    KeepFreedMemory();
    return here->Start(request, std::move(options));
  });
  lines->Show();
  if (!started.ok()) LogToTerminal();
  RaiseUnlessOk(started);
  std::vector<WorkerPointer> made;
  for (uint32_t w = 0; w < workers; ++w) {
    made.emplace_back(
        new HeldWorker(job, std::move(calls[w]), lines, std::make_unique<SeatHere>(here, w)));
  }
  return made;
}

WorkerPointer Join(const std::string& address, const py::object& keys,
                   const std::optional<int64_t>& rank, const std::shared_ptr<HeldJob>& job,
                   const py::object& state, bool insecure, int threads) {
  constexpr int64_t kRankMax = 1'000'000;
  if (rank && (*rank < 0 || *rank > kRankMax)) {
    RaiseMistake("join(): rank=" + std::to_string(*rank) +
                 ": expected a number from 0 to the job's workers - 1, or None");
  }
  RequireThreads(threads);
  auto calls = std::make_unique<ProgramCalls>();
  calls->SetState(state);
  JoinRequestOfTables request;
  request.scheduler = address;
  request.keys = keys.is_none() ? "" : PathOf(keys);
  request.insecure = insecure;
  request.rank = static_cast<int32_t>(rank.value_or(-1));
  if (job != nullptr) {
    request.job = job->text;
    request.overrides = job->overrides;
  }
  request.threads = threads;
  request.worker = OptionsOf(calls.get());
  RefuseFork();
  Result<std::unique_ptr<JoinedTables>> joined = InLibrary([&] {
    const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
    return JoinedTables::Join(std::move(request), *files);
  });
  calls->RaiseIfAnyRaised();
  auto seat = std::make_unique<JoinedSeat>(ValueOf(std::move(joined)));
  auto held = std::make_shared<HeldJob>();
  held->job = seat->worker().job();
  held->text = {"the scheduler at " + address, PrintJob(held->job)};
  return WorkerPointer(new HeldWorker(job != nullptr ? job : held, std::move(calls),
                                      std::make_shared<WaitingLines>(py::none()), std::move(seat)));
}

}  // namespace

void AddTableRuns(py::module_& module) {
  module.def("join_tables", &Join, py::arg("address"), py::kw_only(), py::arg("keys"),
             py::arg("rank"), py::arg("job"), py::arg("state"), py::arg("insecure"),
             py::arg("threads"), "hdps.join without the environment.");
  module.def("local_tables", &Local, py::arg("job"), py::arg("out"), py::kw_only(),
             py::arg("servers"), py::arg("workers"), py::arg("resume"), py::arg("state"),
             py::arg("threads"), py::arg("show"), py::arg("sets"),
             "hdps.local without its progress.");
}

}  // namespace hdps::python
