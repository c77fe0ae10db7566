// Defines the flags of hdps serve, and runs it until it is told to stop.
#include <gflags/gflags.h>
#include <glog/logging.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/nearest_name.h"
#include "common/base/shell_word.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"
#include "common/platform/threads/pause.h"
#include "common/process/command_line.h"
#include "common/process/http_flags.h"
#include "common/process/terminal.h"
#include "tools/commands.h"
#include "tools/common_flags.h"
#include "tools/serve/front/model_target.h"
#include "tools/serve/front/request_queue.h"
#include "tools/serve/front/serving_front.h"
#include "tools/serve/requests/score_request.h"
#include "tools/serve/versions/served_checkpoint.h"

DEFINE_string(name, "", "Name under which the model of --checkpoint is asked; empty: its job's");
DEFINE_string(
    model, "",
    "A model in place of --checkpoint and --name, as NAME:OUT; more than once for several");
DECLARE_string(checkpoint);
DECLARE_string(which);
DECLARE_string(unknown);
DECLARE_string(log);
DECLARE_bool(insecure);

namespace hdps {
namespace {

constexpr std::string_view kServesAt = "127.0.0.1:8080";
constexpr HttpLimits kServingLimits = {.connections = 1024,
                                       .connections_of_one_address = 1024,
                                       .connection_bytes = 128 << 10,
                                       .body_bytes = kRequestBytesMax,
                                       .bodies_bytes = 16 * kRequestBytesMax};
// The whole stop takes less than 10 s.
constexpr int64_t kStopMs = 8000, kSignalEveryMs = 20;

struct ServeFlags {
  std::vector<ServedOptions> models;
  HttpFlags http;
  bool open = false;  // Questions are answered without the token.
};

Status Mistake(const std::string& message) { return Status(Code::kInvalidArgument, message); }

Status CheckName(const std::string& flag, const std::string& name) {
  if (IsModelName(name)) return {};
  return Mistake(flag + ": '" + name +
                 "' cannot stand in a path; a model's name has letters, digits, '_', '-' and '.', "
                 "at most 128");
}

// Returns one model a NAME:OUT of --model, or that of --checkpoint.
Result<std::vector<ServedOptions>> ReadModels() {
  std::vector<ServedOptions> models;
  if (FLAGS_model.empty()) {
    if (FLAGS_checkpoint.empty()) {
      return Mistake(
          "--checkpoint is missing; give the --out of a run, --checkpoint=OUT, or "
          "several as --model=NAME:OUT");
    }
    if (!FLAGS_name.empty()) HDPS_RETURN_IF_ERROR(CheckName("--name", FLAGS_name));
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
    HDPS_RETURN_IF_ERROR(CheckName(flag, one.substr(0, colon)));
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

Result<ServeFlags> ReadServeFlags(FileSystem& files) {
  ServeFlags flags;
  HDPS_ASSIGN_OR_RETURN(flags.models, ReadModels());
  HDPS_ASSIGN_OR_RETURN(const WantedVersion wanted,
                        ParseWantedVersion(FLAGS_which.empty() ? "newest" : FLAGS_which));
  HDPS_ASSIGN_OR_RETURN(const UnknownKeys unknown, ReadUnknown());
  HDPS_ASSIGN_OR_RETURN(int threads, ReadThreadsFlag());
  threads = NewTbbExecutor(threads)->threads();  // Knows the cores that this process may use.
  for (ServedOptions& model : flags.models) {
    model.wanted = wanted;
    model.unknown = unknown;
    model.threads = threads;
    model.tell = [](const std::string& sentence) { LOG(INFO) << sentence; };
  }
  HDPS_ASSIGN_OR_RETURN(flags.http, ReadHttpFlags(files, kServesAt, FLAGS_insecure));
  HttpOptions& http = flags.http.options;
  if (http.listen.empty()) return Mistake("--http=none: nothing is served; give --http=HOST:PORT");
  http.limits = kServingLimits;
  http.json_errors = true;
  bool reached = false;
  HDPS_RETURN_IF_ERROR(CheckHttpAddress(http.listen, &reached));
  flags.open = !reached && flags.http.token_file.empty();
  return flags;
}

using Models = std::vector<std::unique_ptr<ServedCheckpoint>>;

// Loads all models, one after the other.
Result<Models> OpenModels(const ServeFlags& flags, FileSystem& files, MonotonicClock& clock) {
  Models models;
  for (const ServedOptions& options : flags.models) {
    HDPS_ASSIGN_OR_RETURN(std::unique_ptr<ServedCheckpoint> model,
                          ServedCheckpoint::Open(options, files, clock));
    const std::string& name = model->note().name;
    if (options.name.empty()) {
      const Status fits = CheckName("the job's name", name);
      if (!fits.ok()) return Mistake(fits.message() + "; give another by --name=NAME");
    }
    for (const auto& other : models) {
      if (other->note().name != name) continue;
      return Mistake("--model: two models are called '" + name + "'; give each a name of its own");
    }
    models.push_back(std::move(model));
  }
  return models;
}

// Returns a command that asks for a model's inputs and outputs.
std::string ExampleOf(const ServeFlags& flags, const std::string& address,
                      const std::string& name) {
  std::string command = "curl ";
  if (!flags.open && !flags.http.token_file.empty()) {
    command += "-H \"Authorization: Bearer $(cat " + ShellWord(flags.http.token_file) + ")\" ";
  } else if (!flags.open) {
    command += "-H \"Authorization: Bearer TOKEN\" ";
  }
  return command + address + "/v2/models/" + name;
}

Status Serve() {
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  const std::unique_ptr<MonotonicClock> clock = NewSystemClock();
  HDPS_ASSIGN_OR_RETURN(const ServeFlags flags, ReadServeFlags(*files));
  HDPS_RETURN_IF_ERROR(StartLogging("hdps", "", FLAGS_log));
  InstallStopSignals();
  HDPS_ASSIGN_OR_RETURN(const Models models, OpenModels(flags, *files, *clock));
  std::vector<FrontModel> at_front;
  for (const auto& model : models) at_front.push_back({.model = model.get()});
  const std::unique_ptr<RequestQueue> queue = NewRequestQueue(flags.models.front().threads);
  ServingFront front(std::move(at_front), flags.open, *queue, *clock);
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<HttpServer> server, ServeHttp(flags.http, front.Paths()));
  TellWhereToWatch(flags.http, "hdps serve", server.get());
  for (const auto& model : models) {
    const std::string& name = model->note().name;
    PrintErrorText("hdps serve: " + name + " of step " + std::to_string(model->step()) +
                   " answers: " + ExampleOf(flags, server->address(), name) + "\n");
  }
  Pause pause;
  while (!StopRequested()) pause.For(kSignalEveryMs);
  front.Leave();
  server->StopListening();
  if (!server->AwaitPosts(kStopMs)) LOG(WARNING) << "a request was not answered before the end";
  queue->Close();
  return {};
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
          {"checkpoint", "name", "model", "which", "unknown", "threads", "log", "http",
           "http_names", "http_token_file", "http_cert", "http_key", "insecure"},
          Serve};
}

}  // namespace hdps
