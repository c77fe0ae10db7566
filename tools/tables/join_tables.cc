// Asks for the job, and makes a worker of it as hdps-worker does.
#include "tools/tables/join_tables.h"

#include <glog/logging.h>

#include <utility>

#include "common/job/job_facts.h"
#include "common/job/job_file.h"
#include "common/job/spec/parallel_spec.h"
#include "common/net/transport.h"
#include "common/planning/placement.h"
#include "common/platform/process_watch.h"
#include "common/process/command_line.h"
#include "common/process/connections.h"
#include "common/protocol/locate/scheduler_locator.h"
#include "common/protocol/status_messages.h"
#include "tools/scheduler_question.h"

namespace hdps {
namespace {

Result<Job> AskForJob(const JoinRequestOfTables& request, const Connections& connections) {
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<SchedulerConnection> scheduler,
                        SchedulerConnection::Open(request.scheduler, connections));
  HDPS_ASSIGN_OR_RETURN(const JobReply reply,
                        scheduler->Ask<JobReply>(JobRequest(), request.patience_ms));
  if (reply.code != Code::kOk) {
    return Status(reply.code, reply.message + "; or give the job here too");
  }
  const auto text = reply.text.As<char>();
  return ParseJob(std::string(text.begin(), text.end()), "the job of " + request.scheduler,
                  request.overrides);
}

Result<Job> TakeJob(FileSystem& files, JoinRequestOfTables* request,
                    const Connections& connections) {
  if (!request->job) return AskForJob(*request, connections);
  return LoadPlannedJob(files, *request->job, &request->overrides, 0);
}

// Takes the rank that the worker asks for from its job, where the caller gives none.
Status TakeRank(const Job& job, int32_t* rank) {
  const int32_t wanted = job.parallel.global_rank;
  if (wanted >= 0 && *rank >= 0 && wanted != *rank) {
    return {Code::kInvalidArgument, "rank is " + std::to_string(*rank) +
                                        ", but parallel.global_rank is " + std::to_string(wanted) +
                                        "; they are one setting, give one of them"};
  }
  if (wanted >= 0) *rank = wanted;
  return {};
}

}  // namespace

Result<std::unique_ptr<JoinedTables>> JoinedTables::Join(JoinRequestOfTables request,
                                                         FileSystem& files) {
  HDPS_ASSIGN_OR_RETURN(const Connections connections,
                        ConnectionsWith(request.keys, request.insecure, {KeyRole::kWorker}));
  HDPS_RETURN_IF_ERROR(CheckSchedulerGiven(request.scheduler));
  HDPS_ASSIGN_OR_RETURN(std::shared_ptr<SchedulerLocator> locator,
                        LocateScheduler(request.scheduler, connections.may_leave()));
  HDPS_ASSIGN_OR_RETURN(Job job, TakeJob(files, &request, connections));
  if (!IsTablesJob(job)) {
    return Status(Code::kInvalidArgument, "the job of " + request.scheduler +
                                              " has a model of hdps (model.type is not " +
                                              kTablesType + "); hdps-worker trains it");
  }
  HDPS_RETURN_IF_ERROR(TakeRank(job, &request.rank));
  for (const std::string& warning : job.warnings) LOG(WARNING) << warning;

  const PeerName name = NewPeerName();
  TableProcessOptions options;
  options.worker = std::move(request.worker);
  options.node.job = options.worker.job = std::make_shared<const Job>(std::move(job));
  options.node.identity.self = name.peer;
  options.node.identity.scheduler_address = request.scheduler;
  options.node.identity.locator = std::move(locator);
  options.node.identity.rank = request.rank;
  options.node.identity.host = HostAndProcess();
  options.node.identity.process = OwnProcessName();
  options.threads = request.threads;
  auto joined = std::make_unique<JoinedTables>();
  HDPS_ASSIGN_OR_RETURN(
      joined->process_,
      TableProcess::Join(options, NewZmqTransport(connections.Options(name)), *joined->clock_));
  return joined;
}

}  // namespace hdps
