// Starts the members, and lets all workers join at once, because none begins before the others.
#include "tools/tables/local_tables.h"

#include <utility>

#include "common/job/job_spec.h"

namespace hdps {

Result<std::unique_ptr<LocalTables>> LocalTables::Start(LocalClusterOptions options,
                                                        std::vector<TableWorkerOptions> workers,
                                                        FileSystem& files, MonotonicClock& clock) {
  std::unique_ptr<LocalTables> local(new LocalTables(std::move(options), clock));
  local->options_.stop = &local->stop_;
  HDPS_ASSIGN_OR_RETURN(local->members_, ServedJob::Start(local->options_, files, clock));
  local->scheduler_ = StartThread("scheduler", [l = local.get()] { l->end_ = l->members_->Run(); });
  const Status joined = local->Join(std::move(workers));
  if (joined.ok()) return local;
  const ProcessEnd end = local->Close(joined);
  return end.status == kExitDone ? joined : StatusOf(end);
}

Status LocalTables::Join(std::vector<TableWorkerOptions> workers) {
  workers.resize(options_.num_workers);
  workers_.resize(options_.num_workers);
  std::vector<Status> joined(options_.num_workers);
  {
    std::vector<std::unique_ptr<Thread>> joining;
    for (uint32_t w = 0; w < options_.num_workers; ++w) {
      joining.push_back(StartThread("join", [&, w] {
        TableProcessOptions worker;
        worker.worker = std::move(workers[w]);
        worker.node.job = worker.worker.job = options_.job;
        worker.node.identity = members_->Identity(w);
        worker.threads = options_.threads;
        worker.worker.rows_in_replies = true;
        std::unique_ptr<Transport> transport =
            NewInprocTransport(members_->hub(), {.self = worker.node.identity.self});
        Result<std::unique_ptr<TableProcess>> process =
            TableProcess::Join(worker, std::move(transport), clock_);
        joined[w] = process.status();
        if (process.ok()) workers_[w] = *std::move(process);
        if (!joined[w].ok()) {
          members_->Ended("worker " + std::to_string(w),
                          {ExitStatusOf(joined[w].code()), joined[w].message()});
        }
      }));
    }
  }
  for (const Status& status : joined) HDPS_RETURN_IF_ERROR(status);
  return {};
}

ProcessEnd LocalTables::Close(const Status& failure) {
  if (scheduler_ == nullptr) return end_;
  for (uint32_t w = 0; w < workers_.size(); ++w) {
    if (workers_[w] == nullptr) continue;
    const ProcessEnd end = workers_[w]->Leave(failure);
    members_->Ended("worker " + std::to_string(w), end);
  }
  scheduler_.reset();  // Joins it.
  workers_.clear();
  return end_;
}

LocalTables::~LocalTables() {
  Close(Status(Code::kUnavailable, "the program has closed the job before its end"));
}

}  // namespace hdps
