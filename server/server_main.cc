// hdps-server: holds rows for the workers of one job, on this machine.
#include <gflags/gflags.h>
#include <glog/logging.h>

#include <memory>
#include <string>
#include <utility>

#include "common/job/job_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/net/transport.h"
#include "common/planning/placement.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"
#include "common/platform/random.h"
#include "common/process/daemon.h"
#include "common/process/http_flags.h"
#include "common/process/member_pages.h"
#include "common/telemetry/span_recorder.h"
#include "server/record/order_recorder.h"
#include "server/server_memory_limit.h"
#include "server/server_process.h"

DEFINE_string(listen, "tcp://127.0.0.1:0",
              "Address of this server, as workers reach it, where port 0 picks one; with --keys "
              "rows travel by a second port, the next one or the one named as HOST:PORT+DATA_PORT");
DEFINE_string(
    spill_path, "",
    "Folder for rows beyond cluster.memory_limit where the job names none; empty: one below /tmp");
DEFINE_uint64(
    expected_rows, 0,
    "Number of rows that each table will have in all, to foresee this server's memory; 0: unknown");

DEFINE_string(record, "",
              "Folder for the order in which this server takes requests, with which hdps replay "
              "trains an async or ssp run again, bit by bit; empty: none is written");

namespace hdps {
namespace {

constexpr char kProgram[] = "hdps-server";
constexpr char kUsage[] =
    "hdps-server: holds rows of a job's tables and updates them\n"
    "usage: hdps-server --job=FILE --scheduler=ADDRESS [flags]";

Result<ProcessEnd> Run() {
  HDPS_ASSIGN_OR_RETURN(DaemonFlags flags, ReadDaemonFlags(KeyRole::kServer));
  HDPS_ASSIGN_OR_RETURN(MemberFlags member, ReadMemberFlags(flags));
  const std::unique_ptr<FileSystem> files = flags.faults.Around(NewPosixFileSystem());
  HDPS_ASSIGN_OR_RETURN(const HttpFlags http,
                        ReadHttpFlags(*files, kHttpNowhere, flags.connections.insecure));
  HDPS_ASSIGN_OR_RETURN(
      Job job, LoadPlannedJob(*files, flags.job, &flags.overrides, 0, DataFiles::kNotNeeded));
  if (job.cluster.memory_limit > 0) ReturnFreedMemory();
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<PidFile> pid_file, StartDaemon(kProgram, flags));
  for (const std::string& warning : job.warnings) LOG(WARNING) << warning;

  ServerProcessOptions options;
  options.stop = &StopRequested();
  options.leave_ms = flags.leave_ms;
  options.node.job = std::make_shared<const Job>(std::move(job));
  options.node.identity = std::move(member.identity);
  options.node.own_process = true;
  options.node.guests_read = GuestsMayRead(flags.connections, FLAGS_listen);
  options.node.expected_rows = FLAGS_expected_rows;
  options.node.spill_folder = FLAGS_spill_path;
  NodeIdentity& identity = options.node.identity;
  if (options.node.spill_folder.empty()) {
    options.node.spill_folder = "/tmp/hdps_spill_" + std::to_string(NewPeerId().value);
  }
  std::unique_ptr<OrderRecorder> order;
  if (!FLAGS_record.empty()) {
    HDPS_ASSIGN_OR_RETURN(
        order, OrderRecorder::Open(*files, FLAGS_record, identity.self, *options.node.job));
    options.node.order.recorder = order.get();
  }
  TransportOptions connections = flags.connections.Options(member.name);
  connections.data_port = flags.connections.keys != nullptr;
  HoldWithinLimit(*options.node.job, &connections.limits);
  const std::unique_ptr<Transport> transport = flags.faults.Around(NewZmqTransport(connections));
  HDPS_ASSIGN_OR_RETURN(identity.own_address, transport->Listen(FLAGS_listen));
  WarnIfUnprotected(flags.connections, "server", FLAGS_listen, identity.own_address);
  const std::unique_ptr<MonotonicClock> clock = NewSystemClock();
  SpanRecorder recorder(*clock);
  options.node.recorder = &recorder;
  MemberWatch watch;
  if (!http.options.listen.empty()) options.watch = &watch;
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<HttpServer> pages,
                        ServeHttp(http, MemberPages({FigureRole::kServer, options.node.job,
                                                     identity.scheduler_address},
                                                    watch, *clock)));
  TellWhereToWatch(http, kProgram, pages.get());
  const std::unique_ptr<Executor> executor = NewTbbExecutor(member.threads);
  LOG(INFO) << "listening on " << identity.own_address << ", scheduler at "
            << identity.scheduler_address;
  return RunServerProcess(options, *transport, *clock, *files, *executor);
}

}  // namespace
}  // namespace hdps

int main(int argc, char** argv) {
  return hdps::RunDaemon(hdps::kProgram, hdps::Role::kServer, hdps::kUsage, argc, argv, hdps::Run);
}
