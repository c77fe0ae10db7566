// Puts the parts of serving together, in the order in which they may begin and end.
#include "tools/serve/serving.h"

#include <glog/logging.h>

#include <functional>
#include <memory>
#include <utility>

#include "common/base/outside_text.h"
#include "common/base/shell_word.h"
#include "common/job/job_facts.h"
#include "common/job/job_spec.h"
#include "common/platform/executor.h"
#include "common/platform/threads/pause.h"
#include "common/platform/threads/thread_priority.h"
#include "common/process/terminal.h"
#include "common/telemetry/prometheus_text.h"
#include "tools/serve/front/model_target.h"
#include "tools/serve/front/request_queue.h"
#include "tools/serve/front/serving_front.h"
#include "tools/serve/watch/serving_watch.h"

namespace hdps {
namespace {

constexpr int64_t kSignalEveryMs = 20, kTurnEveryMs = 1000;
// The whole stop takes less than 10 s.
constexpr int64_t kLastAnswersMs = 1000, kStopMs = 7000;

// A model with its watch.
struct Served {
  std::unique_ptr<ServedCheckpoint> model;
  std::unique_ptr<ServingWatch> watch;
};

// Looks after the watches about once a second, beside the answers.
class WatchKeeper {
 public:
  explicit WatchKeeper(const std::vector<Served>& all)
      : all_(all), thread_(StartThread("watch", [this] { Run(); })) {}
  ~WatchKeeper() {
    pause_.End();
    thread_->Join();
    for (const Served& served : all_) served.watch->Close();
  }

 private:
  void Run() {
    LowerThreadPriority();
    while (pause_.For(kTurnEveryMs)) {
      for (const Served& served : all_) served.watch->Turn();
    }
  }

  const std::vector<Served>& all_;
  Pause pause_;
  const std::unique_ptr<Thread> thread_;
};

Result<std::unique_ptr<ServedCheckpoint>> OpenModel(const ServedOptions& options, FileSystem& files,
                                                    MonotonicClock& clock) {
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<ServedCheckpoint> model,
                        ServedCheckpoint::Open(options, files, clock));
  const Status fits = CheckModelName("the job's name", model->note().name);
  if (!fits.ok()) {
    return Status(Code::kInvalidArgument, fits.message() + "; give another by --name=NAME");
  }
  return model;
}

Result<std::unique_ptr<ServingWatch>> OpenWatch(ServedCheckpoint& model, RequestLogOptions log,
                                                bool one_of_several, FileSystem& files,
                                                MonotonicClock& clock) {
  const std::string& name = model.note().name;
  const Job job = model.job();
  ServingWatchOptions options;
  options.tasks = LabelsOf(job).size();
  options.versions = [&model] { return model.facts(); };
  options.warn = [name](const std::string& sentence) {
    LOG(WARNING) << "model " << name << ": " << EscapeUntrusted(sentence);
  };
  Result<EvaluationAnswers> evaluation = EvaluationAnswers::Read(files, job);
  if (evaluation.ok()) {
    options.evaluation = *std::move(evaluation);
  } else {
    LOG(INFO) << "model " << name << ": its answers are compared with none of its evaluation data: "
              << EscapeUntrusted(evaluation.status().message());
  }
  if (!log.path.empty()) {
    if (one_of_several) log.path += "." + name;
    HDPS_ASSIGN_OR_RETURN(options.log, RequestLog::Open(files, job, log));
  }
  return std::make_unique<ServingWatch>(model, clock, std::move(options));
}

// Loads all models, one after the other.
Result<std::vector<Served>> OpenAll(const ServingOptions& options, FileSystem& files,
                                    MonotonicClock& clock) {
  std::vector<Served> all;
  for (const ServedOptions& one : options.models) {
    Served served;
    HDPS_ASSIGN_OR_RETURN(served.model, OpenModel(one, files, clock));
    for (const Served& other : all) {
      if (other.model->note().name != served.model->note().name) continue;
      return Status(Code::kInvalidArgument, "--model: two models are called '" +
                                                served.model->note().name +
                                                "'; give each a name of its own");
    }
    HDPS_ASSIGN_OR_RETURN(served.watch, OpenWatch(*served.model, options.log,
                                                  options.models.size() > 1, files, clock));
    all.push_back(std::move(served));
  }
  return all;
}

// Returns a command that asks for a model's inputs and outputs.
std::string ExampleOf(const ServingOptions& options, const std::string& address,
                      const std::string& name) {
  std::string command = "curl ";
  if (!options.open && !options.http.token_file.empty()) {
    command += "-H \"Authorization: Bearer $(cat " + ShellWord(options.http.token_file) + ")\" ";
  } else if (!options.open) {
    command += "-H \"Authorization: Bearer TOKEN\" ";
  }
  return command + address + "/v2/models/" + name;
}

void TellWhoAnswers(const ServingOptions& options, const std::vector<Served>& all,
                    const HttpServer* server, const MessageFront* messages) {
  TellWhereToWatch(options.http, "hdps serve", server);
  if (messages != nullptr) PrintErrorText("hdps serve: answers at " + messages->address() + "\n");
  for (const Served& served : all) {
    const std::string& name = served.model->note().name;
    const std::string how =
        server == nullptr ? "" : ": " + ExampleOf(options, server->address(), name);
    PrintErrorText("hdps serve: " + name + " of step " + std::to_string(served.model->step()) +
                   " answers" + how + "\n");
  }
}

HttpPath MetricsPath(const std::vector<Served>& all, FileSystem& files) {
  std::vector<const ServingWatch*> watches;
  for (const Served& served : all) watches.push_back(served.watch.get());
  return {"/metrics", false, [watches, &files](const HttpRequest&) {
            return HttpAnswer{
                .type = std::string(kPrometheusType),
                .body = std::make_shared<const std::string>(ServingMetrics(files, watches))};
          }};
}

}  // namespace

Status CheckModelName(const std::string& flag, const std::string& name) {
  if (IsModelName(name)) return {};
  return Status(Code::kInvalidArgument,
                flag + ": '" + name +
                    "' cannot stand in a path; a model's name has letters, digits, '_', '-' and "
                    "'.', at most 128");
}

Status RunServing(const ServingOptions& options, FileSystem& files, MonotonicClock& clock,
                  const std::atomic<bool>& stop) {
  HDPS_ASSIGN_OR_RETURN(const std::vector<Served> all, OpenAll(options, files, clock));
  std::vector<WatchedModel> models;
  for (const Served& served : all) models.push_back({served.model.get(), served.watch.get()});
  const std::unique_ptr<RequestQueue> queue =
      NewRequestQueue(options.threads, options.batch_wait_us);
  ServingFront front(models, options.open, *queue, clock);
  std::vector<HttpPath> paths = front.Paths();
  paths.push_back(MetricsPath(all, files));
  std::unique_ptr<MessageFront> messages;
  if (!options.messages.listen.empty()) {
    HDPS_ASSIGN_OR_RETURN(messages, MessageFront::Listen(options.messages, models, *queue));
  }
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<HttpServer> server,
                        ServeHttp(options.http, std::move(paths)));
  const WatchKeeper keeper(all);
  TellWhoAnswers(options, all, server.get(), messages.get());
  Pause pause;
  while (!stop) pause.For(kSignalEveryMs);
  front.Leave();
  if (server) {
    server->StopListening();
    // A connection that is between two requests learns from its next answer that it ends. Without
    // that time its client would send a request that nobody answers.
    pause.For(kLastAnswersMs);
  }
  if (messages) messages->Stop();
  if (server && !server->AwaitPosts(kStopMs)) {
    LOG(WARNING) << "a request did not end, and has no answer";
  }
  queue->Close();
  return {};
}

}  // namespace hdps
