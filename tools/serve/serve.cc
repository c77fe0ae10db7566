// Defines the flags of hdps serve.
#include <gflags/gflags.h>
#include <glog/logging.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/byte_count.h"
#include "common/base/nearest_name.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"
#include "common/process/command_line.h"
#include "common/process/connections.h"
#include "common/process/http_flags.h"
#include "tools/checkpoints/local_checkpoint.h"
#include "tools/commands.h"
#include "tools/common_flags.h"
#include "tools/serve/front/request_queue.h"
#include "tools/serve/requests/score_request.h"
#include "tools/serve/serving.h"
#include "tools/serve/versions/served_checkpoint.h"

DEFINE_string(
    name, "",
    "serve: name under which the model of --checkpoint is asked; deploy: name of the job in the "
    "cluster; empty: that of the job");
DEFINE_string(
    log_requests, "",
    "File for a share of the rows that were asked, with their scores, in the job's own data "
    "format; of several models each has FILE.NAME; empty: none");
DEFINE_double(log_share, 0.01, "Share of the rows that --log_requests has, above 0 and at most 1");
DEFINE_string(memory_limit, "",
              "Memory of the process, as 4GiB: rows beyond it are read from disk; empty: all rows "
              "are in memory");
DEFINE_string(spill_path, "/var/tmp",
              "Folder in which --memory_limit makes one for its rows, of the size of their weights "
              "and keys");
DEFINE_int64(batch_wait_us, 0,
             "Microseconds that a small request waits at most for others, to be scored with them; "
             "0: each is scored at once");
DEFINE_bool(
    open, false,
    "Answer who has no token also beyond this machine, where a gateway in front decides who "
    "may ask; goes with --insecure");
DECLARE_string(checkpoint);
DECLARE_string(model);
DECLARE_string(which);
DECLARE_string(unknown);
DECLARE_string(items);
DECLARE_string(item_text);
DECLARE_string(log);
DECLARE_string(listen);
DECLARE_string(keys);
DECLARE_bool(insecure);

namespace hdps {
namespace {

constexpr std::string_view kServesAt = "127.0.0.1:8080";
constexpr HttpLimits kServingLimits = {.connections = 1024,
                                       .connections_of_one_address = 1024,
                                       .connection_bytes = 128 << 10,
                                       .body_bytes = kRequestBytesMax,
                                       .bodies_bytes = 16 * kRequestBytesMax};

Status Mistake(const std::string& message) { return Status(Code::kInvalidArgument, message); }

// Returns one model a NAME:OUT of --model, or that of --checkpoint.
Result<std::vector<ServedOptions>> ReadModels() {
  std::vector<ServedOptions> models;
  if (FLAGS_model.empty()) {
    if (FLAGS_checkpoint.empty()) {
      return Mistake(
          "--checkpoint is missing; give the --out of a run, --checkpoint=OUT, or "
          "several as --model=NAME:OUT");
    }
    if (!FLAGS_name.empty()) HDPS_RETURN_IF_ERROR(CheckModelName("--name", FLAGS_name));
    models.push_back({.name = FLAGS_name, .folder = FLAGS_checkpoint});
    return models;
  }
  if (!FLAGS_checkpoint.empty() || !FLAGS_name.empty()) {
    return Mistake(std::string(FLAGS_checkpoint.empty() ? "--name" : "--checkpoint") +
                   " and --model contradict each other; name all models by --model=NAME:OUT");
  }
  std::string rest = FLAGS_model;
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    const std::string one = rest.substr(0, comma);
    const std::string flag = "--model=" + one;
    const size_t colon = one.find(':');
    if (colon == std::string::npos || colon + 1 == one.size()) {
      return Mistake(flag + ": expected NAME:OUT, as clicks:out/clicks");
    }
    HDPS_RETURN_IF_ERROR(CheckModelName(flag, one.substr(0, colon)));
    models.push_back({.name = one.substr(0, colon), .folder = one.substr(colon + 1)});
    rest.erase(0, comma + 1);
  }
  return models;
}

Result<UnknownKeys> ReadUnknown() {
  if (FLAGS_unknown.empty() || FLAGS_unknown == "initial") return UnknownKeys::kInitial;
  if (FLAGS_unknown == "zero") return UnknownKeys::kZero;
  return Mistake("--unknown=" + FLAGS_unknown + ": expected initial or zero" +
                 DidYouMean(FLAGS_unknown, {"initial", "zero"}));
}

Status ReadHttp(FileSystem& files, ServingOptions* options) {
  HDPS_ASSIGN_OR_RETURN(options->http, ReadHttpFlags(files, kServesAt, FLAGS_insecure));
  HttpOptions& http = options->http.options;
  http.limits = kServingLimits;
  http.json_errors = true;
  if (http.listen.empty()) return {};
  if (FLAGS_open && !options->http.token_file.empty()) {
    return Mistake("--open and --http_token_file=" + options->http.token_file +
                   " contradict each other; give the one that says who may ask");
  }
  bool reached = false;
  HDPS_RETURN_IF_ERROR(CheckHttpAddress(http.listen, &reached));
  options->open = options->http.token_file.empty() && (!reached || FLAGS_open);
  http.open_404 = options->open;
  return {};
}

Status ReadMessages(ServingOptions* options) {
  options->messages.listen = FLAGS_listen;
  if (FLAGS_listen.empty()) {
    if (FLAGS_keys.empty()) return {};
    return Mistake("--keys=" + FLAGS_keys +
                   ": they are for ZeroMQ; give --listen=tcp://HOST:PORT as well");
  }
  HDPS_ASSIGN_OR_RETURN(options->messages.connections, ReadConnections({KeyRole::kServing}));
  return {};
}

// A folder of a process that was killed is in nobody's way: the number of this one is in the name.
Status ReadMemoryLimit(ServingOptions* options) {
  if (FLAGS_memory_limit.empty()) {
    if (gflags::GetCommandLineFlagInfoOrDie("spill_path").is_default) return {};
    return Mistake("--spill_path=" + FLAGS_spill_path +
                   ": it has an effect beside --memory_limit alone; give that as well");
  }
  const std::optional<uint64_t> bytes = ParseByteCount(FLAGS_memory_limit);
  if (!bytes || *bytes == 0) {
    return Mistake("--memory_limit=" + FLAGS_memory_limit + ": expected bytes, as 512MiB or 4GiB");
  }
  int number = 0;
  for (ServedOptions& model : options->models) {
    model.memory_limit = *bytes;
    model.scratch = JoinPath(FLAGS_spill_path, "hdps_serve_" + std::to_string(::getpid()) + "_" +
                                                   std::to_string(number++));
  }
  return {};
}

Status ReadLog(ServingOptions* options) {
  options->log.path = FLAGS_log_requests;
  options->log.share = FLAGS_log_share;
  if (FLAGS_log_share > 0 && FLAGS_log_share <= 1) return {};
  return Mistake("--log_share=" + std::to_string(FLAGS_log_share) +
                 " is out of range; give a share above 0 and at most 1");
}

Status ReadBatchWait(ServingOptions* options) {
  options->batch_wait_us = FLAGS_batch_wait_us;
  if (FLAGS_batch_wait_us >= 0 && FLAGS_batch_wait_us <= kBatchWaitUsMax) return {};
  return Mistake("--batch_wait_us=" + std::to_string(FLAGS_batch_wait_us) +
                 " is out of range; give 0 to " + std::to_string(kBatchWaitUsMax));
}

Result<ServingOptions> ReadServingFlags(FileSystem& files) {
  ServingOptions options;
  HDPS_ASSIGN_OR_RETURN(options.models, ReadModels());
  HDPS_ASSIGN_OR_RETURN(const WantedVersion wanted,
                        ParseWantedVersion(FLAGS_which.empty() ? "newest" : FLAGS_which));
  HDPS_ASSIGN_OR_RETURN(const UnknownKeys unknown, ReadUnknown());
  if (FLAGS_items.empty() && !FLAGS_item_text.empty()) {
    return Mistake("--item_text=" + FLAGS_item_text +
                   ": it names a column of the items; give --items=FILE as well");
  }
  HDPS_RETURN_IF_ERROR(ReadBatchWait(&options));
  HDPS_ASSIGN_OR_RETURN(const int threads, ReadThreadsFlag());
  options.threads = NewTbbExecutor(threads)->threads();  // It knows the cores of this process.
  for (ServedOptions& model : options.models) {
    model.wanted = wanted;
    model.unknown = unknown;
    model.items = {FLAGS_items, FLAGS_item_text};
    model.threads = options.threads;
    model.tell = [](const std::string& sentence) { LOG(INFO) << sentence; };
  }
  HDPS_RETURN_IF_ERROR(ReadHttp(files, &options));
  HDPS_RETURN_IF_ERROR(ReadMessages(&options));
  if (options.http.options.listen.empty() && options.messages.listen.empty()) {
    return Mistake(
        "--http=none: nothing is served; give --http=HOST:PORT, or "
        "--listen=tcp://HOST:PORT");
  }
  HDPS_RETURN_IF_ERROR(ReadMemoryLimit(&options));
  HDPS_RETURN_IF_ERROR(ReadLog(&options));
  return options;
}

// Fetches models from object storage. Their versions stay as they were fetched.
Result<std::vector<LocalCheckpoint>> FetchModels(FileSystem& files, ServingOptions* options) {
  std::vector<LocalCheckpoint> fetched;
  for (ServedOptions& model : options->models) {
    WantedCopies wanted = WantedCopies::Of(model.wanted.which);
    if (model.wanted.step != kNoClock) {
      wanted = {.kind = WantedCopies::Kind::kStep, .step = model.wanted.step};
    }
    HDPS_ASSIGN_OR_RETURN(LocalCheckpoint local,
                          LocalCheckpoint::Open(files, model.folder, wanted));
    if (local.path() != model.folder) {
      LOG(WARNING) << model.folder << " is served as it was fetched: newer checkpoints there are "
                   << "not followed; start again for them, or keep a local folder";
    }
    model.folder = local.path();
    fetched.push_back(std::move(local));
  }
  return fetched;
}

Status Serve() {
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  HDPS_ASSIGN_OR_RETURN(ServingOptions options, ReadServingFlags(*files));
  HDPS_RETURN_IF_ERROR(StartLogging("hdps", "", FLAGS_log));
  HDPS_ASSIGN_OR_RETURN(const std::vector<LocalCheckpoint> fetched, FetchModels(*files, &options));
  InstallStopSignals();
  return RunServing(options, *files, *NewSystemClock(), StopRequested());
}

}  // namespace

Subcommand ServeCommand() {
  return {"serve",
          "answer requests for predictions, and follow newer checkpoints",
          "hdps serve --checkpoint=OUT [--name=NAME] [--http=HOST:PORT] [flags]\n"
          "       hdps serve --model=NAME:OUT --model=NAME:OUT [flags]\n"
          "It answers the Open Inference Protocol (KServe, Triton) at\n"
          "/v2/models/NAME/infer and TensorFlow Serving's /v1/models/NAME:predict, at\n"
          "127.0.0.1:8080 unless --http says otherwise. The newest checkpoint answers\n"
          "unless --which says otherwise, and newer ones are taken as they come.",
          {"checkpoint", "name",
           "model",      "which",
           "unknown",    "items",
           "item_text",  "threads",
           "log",        "memory_limit",
           "spill_path", "http",
           "http_names", "http_token_file",
           "http_cert",  "http_key",
           "listen",     "keys",
           "insecure",   "log_requests",
           "log_share",  "batch_wait_us",
           "open"},
          Serve};
}

}  // namespace hdps
