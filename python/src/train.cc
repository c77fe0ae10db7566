// Binds the run of a job in this process.
#include <pybind11/stl.h>

#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "common/process/command_line.h"
#include "python/src/arguments.h"
#include "python/src/bindings.h"
#include "python/src/caller_queue.h"
#include "python/src/cells/columns_in.h"
#include "python/src/entry.h"
#include "python/src/job.h"
#include "python/src/only_run.h"
#include "python/src/status.h"
#include "tools/training.h"

namespace hdps::python {
namespace py = pybind11;
namespace {

py::dict StepDict(WorkerId worker, const StepReport& report) {
  py::dict step;
  step["worker"] = worker.value;
  step["epoch"] = report.epoch + 1;
  step["step"] = report.clock;
  step["examples"] = report.examples;
  step["loss"] = report.examples > 0 ? report.loss_sum / static_cast<double>(report.examples)
                                     : std::numeric_limits<double>::quiet_NaN();
  return step;
}

// Holds the callables that hear of a run; each may be None.
struct Listeners {
  py::object show;  // Has the methods notice, warning and progress, and says whether it is `live`.
  py::object on_step, on_eval;
};

// Passes what a run says to Python. Lives as long as the run.
class Passing {
 public:
  Passing(const Listeners& listeners, CallerQueue& queue) : listeners_(listeners), queue_(queue) {}

  // Requires: the interpreter's lock is held.
  void AddTo(TrainingRequest* request) {
    request->stop = &queue_.stop();
    if (!listeners_.show.is_none()) {
      request->voice.notice = Showing("notice");
      request->voice.warning = Showing("warning");
      if (py::cast<bool>(listeners_.show.attr("live"))) {
        request->voice.progress = Showing("progress");
      }
    }
    if (!listeners_.on_eval.is_none()) {
      request->voice.evaluation = [this](const std::string& line) {
        queue_.Post([this, line] { Ask(listeners_.on_eval, FromJson(line)); });
      };
    }
    if (listeners_.on_step.is_none() && listeners_.on_eval.is_none()) return;
    request->after_step = [this](WorkerId worker, const StepReport& report) {
      if (!listeners_.on_step.is_none()) {
        queue_.Post([this, worker, report] { Ask(listeners_.on_step, StepDict(worker, report)); });
      }
      queue_.WaitUntilDone();
    };
  }

 private:
  std::function<void(const std::string&)> Showing(const char* method) {
    return [this, method](const std::string& line) {
      queue_.Post([this, method, line] { listeners_.show.attr(method)(ToText(line)); });
    };
  }
  void Ask(const py::object& callback, const py::object& told) {
    if (queue_.stop()) return;
    if (callback(told).is(py::bool_(false))) queue_.Stop();
  }

  const Listeners& listeners_;
  CallerQueue& queue_;
};

Result<ProcessEnd> Run(const TrainingRequest& request) {
  try {
    const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
    return RunTraining(request, *files);
  } catch (const std::bad_alloc& full) {
    return Status(Code::kResourceExhausted, full.what());
  }
}

// Data that stand for the files of the job; each may be None.
struct RowsInMemory {
  py::object train, eval;

  // Requires: the interpreter's lock is held.
  void AddTo(const HeldJob& job, TrainingRequest* request) const {
    for (const auto& [name, rows] : {std::pair("train", train), std::pair("eval", eval)}) {
      if (rows.is_none()) continue;
      const std::string path = std::string("memory:") + name;
      request->tables[path] = TableOfRows(rows, ColumnsNeeded(job.job.data, /*labels=*/true));
      request->overrides.push_back(std::string("data.") + name + "=[\"" + path + "\"]");
    }
  }
};

void Train(const HeldJob& job, const py::object& out, const RowsInMemory& rows, uint32_t workers,
           uint32_t servers, const std::string& resume, int threads, const Listeners& listeners) {
  RequireThreads(threads);
  TrainingRequest request;
  request.job = job.text;
  request.overrides = job.overrides;
  rows.AddTo(job, &request);
  request.out = PathOf(out);
  request.workers = workers;
  request.servers = servers;
  request.threads = threads;
  request.resume = ValueOf(ReadResume(resume));
  CallerQueue queue;
  Passing passing(listeners, queue);
  passing.AddTo(&request);
  RefuseFork();
  const OnlyRun only;
  std::optional<Result<ProcessEnd>> end;
  {
    const Entry entry;
    KeepFreedMemory();
    const std::unique_ptr<Thread> run = StartThread("train", [&] {
      end.emplace(Run(request));
      queue.Close();
    });
    queue.Serve();
    run->Join();
    LogToTerminal();
  }
  queue.RaiseIfAnyRaised();
  RaiseUnlessOk(StatusOf(ValueOf(*std::move(end))));
}

}  // namespace

void LogToTerminal() {
  // Only a wrong level or a file can be refused.
  static_cast<void>(StartLogging("hdps", "", "warning"));
}

void AddTrain(py::module_& module) {
  module.def(
      "train",
      [](const HeldJob& job, const py::object& out, py::object train, py::object eval,
         uint32_t workers, uint32_t servers, const std::string& resume, int threads,
         py::object show, py::object on_step, py::object on_eval) {
        Train(job, out, {std::move(train), std::move(eval)}, workers, servers, resume, threads,
              {std::move(show), std::move(on_step), std::move(on_eval)});
      },
      py::arg("job"), py::arg("out"), py::kw_only(), py::arg("train"), py::arg("eval"),
      py::arg("workers"), py::arg("servers"), py::arg("resume"), py::arg("threads"),
      py::arg("show"), py::arg("on_step"), py::arg("on_eval"),
      "Runs a job in this process: hdps.train without its progress.");
}

}  // namespace hdps::python
