// hdps-load: asks a server for predictions at planned times, or a checkpoint in this process.
#include <gflags/gflags.h>

#include <memory>
#include <string>

#include "benchmarks/serving/http_load.h"
#include "benchmarks/serving/load_figures.h"
#include "benchmarks/serving/scoring_rate.h"
#include "common/platform/file_system.h"
#include "common/platform/output_file.h"
#include "common/process/command_line.h"
#include "common/process/terminal.h"

DEFINE_string(server, "", "IPv4 address and port to which the requests are sent");
DEFINE_string(requests, "", "File of whole HTTP requests, one behind the other, sent in turns");
DEFINE_double(rate, 0,
              "Rows a second that become due, whether or not earlier ones are answered; 0: each "
              "connection asks again when it has its answer");
DEFINE_string(gaps, "even", "Gaps between planned times: even or random (exponential)");
DEFINE_int32(connections, 16, "Number of connections, 1 to 1000, which stay open");
DEFINE_string(answers, "", "File that gets the first answer to each request; empty: none");
DEFINE_string(checkpoint, "", "Checkpoint that is scored in this process instead of a server");
DEFINE_string(data, "", "With --checkpoint: rows in Criteo's layout");
DEFINE_int32(calls, 1, "With --checkpoint: number of calls side by side, 1 to 64");
DEFINE_uint64(rows, 32, "Number of rows of each request or call, 1 to 8192");
DEFINE_double(seconds, 5, "How long to ask, up to 3600");

namespace hdps {
namespace {

constexpr std::string_view kFlags[] = {"server",      "requests", "rate",       "gaps",
                                       "connections", "answers",  "checkpoint", "data",
                                       "calls",       "rows",     "seconds"};
constexpr char kUsage[] =
    "hdps-load: measures how fast rows are scored, and prints figures as JSON\n"
    "usage: hdps-load --server=HOST:PORT --requests=FILE [--rate=ROWS_A_SECOND] [flags]\n"
    "       hdps-load --checkpoint=DIR --data=FILE [--calls=N] [flags]\n"
    "Latency counts from the planned time of a request.";
constexpr uint64_t kRequestsBytesMax = 1 << 30;

Status Mistaken(const std::string& message) { return {Code::kInvalidArgument, message}; }

Status CheckFlags() {
  if (FLAGS_server.empty() == FLAGS_checkpoint.empty())
    return Mistaken("give either --server with --requests, or --checkpoint with --data");
  if (!FLAGS_server.empty() && FLAGS_requests.empty())
    return Mistaken("--requests is missing: a file of whole HTTP requests");
  if (!FLAGS_checkpoint.empty() && FLAGS_data.empty())
    return Mistaken("--data is missing: a file in Criteo's layout");
  if (FLAGS_rows < 1 || FLAGS_rows > 8192)
    return Mistaken("--rows=" + std::to_string(FLAGS_rows) + " is out of range; give 1 to 8192");
  if (!(FLAGS_seconds > 0 && FLAGS_seconds <= 3600))
    return Mistaken("--seconds=" + std::to_string(FLAGS_seconds) + ": give a time up to 3600");
  if (!(FLAGS_rate >= 0 && FLAGS_rate <= 1e9))
    return Mistaken("--rate=" + std::to_string(FLAGS_rate) + ": give 0 to 1e9 rows a second");
  if (FLAGS_gaps != "even" && FLAGS_gaps != "random")
    return Mistaken("--gaps=" + FLAGS_gaps + ": give even or random");
  if (FLAGS_connections < 1 || FLAGS_connections > 1000) {
    return Mistaken("--connections=" + std::to_string(FLAGS_connections) +
                    " is out of range; give 1 to 1000");
  }
  if (FLAGS_calls < 1 || FLAGS_calls > 64)
    return Mistaken("--calls=" + std::to_string(FLAGS_calls) + " is out of range; give 1 to 64");
  return Status();
}

Status AskServer(FileSystem& files) {
  LoadPlan plan;
  plan.server = FLAGS_server;
  HDPS_ASSIGN_OR_RETURN(const std::string requests,
                        ReadWholeFile(files, FLAGS_requests, kRequestsBytesMax));
  HDPS_ASSIGN_OR_RETURN(plan.requests, SplitMessages(requests));
  plan.requests_a_second = FLAGS_rate / static_cast<double>(FLAGS_rows);
  plan.random_gaps = FLAGS_gaps == "random";
  plan.connections = FLAGS_connections;
  plan.seconds = FLAGS_seconds;
  HDPS_ASSIGN_OR_RETURN(const LoadReport report, RunLoad(plan));
  PrintOutText(LoadFigures(plan, report, static_cast<double>(FLAGS_rows)));
  if (FLAGS_answers.empty()) return Status();
  std::string answers;
  for (const std::string& answer : report.answers) answers += answer;
  return WriteNamedFile(files, FLAGS_answers, answers);
}

Status AskCheckpoint(FileSystem& files) {
  ScoringPlan plan = {.checkpoint = FLAGS_checkpoint, .data = FLAGS_data};
  plan.batch = FLAGS_rows;
  plan.calls = FLAGS_calls;
  plan.seconds = FLAGS_seconds;
  HDPS_ASSIGN_OR_RETURN(const double rows_a_second, ScoringRate(files, plan));
  PrintOut("{\"rows_a_second\": %.1f}\n", rows_a_second);
  return Status();
}

Status Run() {
  HDPS_RETURN_IF_ERROR(CheckFlags());
  HDPS_RETURN_IF_ERROR(StartLogging("hdps-load", "", "warning"));
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  return FLAGS_server.empty() ? AskCheckpoint(*files) : AskServer(*files);
}

}  // namespace
}  // namespace hdps

int main(int argc, char** argv) {
  hdps::KeepFreedMemory();
  hdps::Status status = hdps::ParseCommandLine(hdps::kUsage, &argc, &argv, nullptr, hdps::kFlags);
  if (status.ok()) status = hdps::Run();
  return status.ok() ? hdps::kExitDone : hdps::ReportAndExitStatus("hdps-load", status);
}
