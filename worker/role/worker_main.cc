// hdps-worker: reads, computes and exchanges gradients for one job, on this machine.
#include <gflags/gflags.h>
#include <glog/logging.h>

#include <memory>
#include <string>
#include <utility>

#include "common/job/job_facts.h"
#include "common/job/job_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/net/transport.h"
#include "common/planning/placement.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"
#include "common/process/daemon.h"
#include "common/process/http_flags.h"
#include "common/process/member_pages.h"
#include "common/process/terminal.h"
#include "common/telemetry/span_recorder.h"
#include "worker/data/cache/row_caches.h"
#include "worker/role/worker_process.h"

DEFINE_string(collective_host, "127.0.0.1",
              "Address of this machine for the other workers, used when dense gradients are summed "
              "by allreduce");
DEFINE_bool(insecure_collective, false,
            "Allow --collective_host beyond loopback although Gloo and NCCL use no keys");
DEFINE_int64(max_bad_rows, -1,
             "Number of bad rows that are skipped before the job ends; -1: the job file's "
             "data.max_bad_rows");

DEFINE_uint32(gpu, 0,
              "Number of this worker among the workers of its machine, which use its GPUs in turn");

namespace hdps {
namespace {

constexpr char kProgram[] = "hdps-worker";
constexpr char kUsage[] =
    "hdps-worker: trains a job's model on its part of the data\n"
    "usage: hdps-worker --job=FILE --scheduler=ADDRESS [flags]";

// Takes the rank that the worker asks for from its job, where --rank says none.
Status TakeRank(const Job& job, NodeIdentity* identity) {
  const int32_t wanted = job.parallel.global_rank;
  if (wanted >= 0 && identity->rank >= 0 && wanted != identity->rank) {
    return {Code::kInvalidArgument, "--rank=" + std::to_string(identity->rank) +
                                        ", but parallel.global_rank is " + std::to_string(wanted) +
                                        "; they are one setting, give one of them"};
  }
  if (wanted >= 0) identity->rank = wanted;
  return {};
}

Result<ProcessEnd> Run() {
  HDPS_ASSIGN_OR_RETURN(DaemonFlags flags, ReadDaemonFlags(KeyRole::kWorker));
  HDPS_ASSIGN_OR_RETURN(MemberFlags member, ReadMemberFlags(flags));
  if (FLAGS_max_bad_rows >= 0) {
    flags.overrides.push_back("data.max_bad_rows=" + std::to_string(FLAGS_max_bad_rows));
  }
  const std::unique_ptr<FileSystem> files = flags.faults.Around(NewPosixFileSystem());
  HDPS_ASSIGN_OR_RETURN(const HttpFlags http,
                        ReadHttpFlags(*files, kHttpNowhere, flags.connections.insecure));
  HDPS_ASSIGN_OR_RETURN(Job job, LoadPlannedJob(*files, flags.job, &flags.overrides, 0));
  HDPS_RETURN_IF_ERROR(NeedsLayers(job, kProgram));
  HDPS_RETURN_IF_ERROR(TakeRank(job, &member.identity));
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<PidFile> pid_file, StartDaemon(kProgram, flags));
  HDPS_RETURN_IF_ERROR(
      CheckCollectiveHost(flags.connections, FLAGS_collective_host, FLAGS_insecure_collective,
                          job.parallel.dense_exchange == DenseExchange::kAllreduce));
  for (const std::string& warning : job.warnings) LOG(WARNING) << warning;

  WorkerProcessOptions options;
  options.stop = &StopRequested();
  options.leave_ms = flags.leave_ms;
  options.collective_host = FLAGS_collective_host;
  options.number_here = FLAGS_gpu;
  options.node.job = std::make_shared<const Job>(std::move(job));
  options.node.identity = std::move(member.identity);
  RowCacheOptions keeping = CacheOptionsOf(*options.node.job, *files, "");
  keeping.all_workers = false;
  options.rows = std::make_shared<RowCaches>(*files, keeping);
  options.print = [](const std::string& line) {
    LOG(INFO) << line;
    PrintErrorText(line + "\n");
  };
  const std::unique_ptr<Transport> transport =
      flags.faults.Around(NewZmqTransport(flags.connections.Options(member.name)));
  const std::unique_ptr<MonotonicClock> clock = NewSystemClock();
  SpanRecorder recorder(*clock);
  options.node.recorder = &recorder;
  MemberWatch watch;
  if (!http.options.listen.empty()) options.watch = &watch;
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<HttpServer> pages,
                        ServeHttp(http, MemberPages({FigureRole::kWorker, options.node.job,
                                                     options.node.identity.scheduler_address},
                                                    watch, *clock)));
  TellWhereToWatch(http, kProgram, pages.get());
  const std::unique_ptr<Executor> executor = NewTbbExecutor(member.threads);
  LOG(INFO) << "worker of " << options.node.job->name << ", scheduler at "
            << options.node.identity.scheduler_address;
  return RunWorkerProcess(options, *transport, *clock, *files, *executor).end;
}

}  // namespace
}  // namespace hdps

int main(int argc, char** argv) {
  return hdps::RunDaemon(hdps::kProgram, hdps::Role::kWorker, hdps::kUsage, argc, argv, hdps::Run);
}
