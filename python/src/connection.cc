// Binds hdps.Connection: questions to the scheduler of a running job.
#include <memory>
#include <string>
#include <utility>

#include "common/base/thread_annotations.h"
#include "common/process/connections.h"
#include "common/protocol/status_messages.h"
#include "python/src/arguments.h"
#include "python/src/bindings.h"
#include "python/src/entry.h"
#include "python/src/status.h"
#include "tools/scheduler_question.h"
#include "tools/status_text.h"
#include "tools/why/explanation.h"
#include "tools/why/why_question.h"

namespace hdps::python {
namespace py = pybind11;
namespace {

// Invariant: one question at a time; threads that ask meanwhile wait.
class Connection {
 public:
  explicit Connection(std::unique_ptr<SchedulerConnection> scheduler)
      : scheduler_(std::move(scheduler)), address_(scheduler_->address()) {}

  Result<std::string> Status() HDPS_EXCLUDES(mutex_) {
    constexpr int64_t kPatienceMs = 5000;
    MutexLock lock(mutex_);
    HDPS_ASSIGN_OR_RETURN(const StatusReply status,
                          scheduler_->Ask<StatusReply>(StatusRequest(), kPatienceMs));
    return StatusJson(status);
  }
  Result<std::string> Why() HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    HDPS_ASSIGN_OR_RETURN(const WhyFacts facts, AskWhy(*scheduler_));
    return ToJson(facts.now, Explain(facts));
  }
  const std::string& address() const { return address_; }

 private:
  Mutex mutex_;
  const std::unique_ptr<SchedulerConnection> scheduler_ HDPS_GUARDED_BY(mutex_);
  const std::string address_;
};

using ConnectionPointer = std::shared_ptr<Connection>;

ConnectionPointer Connect(const std::string& address, const py::object& keys, bool insecure) {
  const std::string folder = keys.is_none() ? "" : PathOf(keys);
  auto scheduler = ValueOf(InLibrary([&]() -> Result<std::unique_ptr<SchedulerConnection>> {
    HDPS_ASSIGN_OR_RETURN(Connections connections,
                          ConnectionsWith(folder, insecure, {KeyRole::kReader, KeyRole::kAdmin}));
    return SchedulerConnection::Open(address, std::move(connections));
  }));
  return {new Connection(std::move(scheduler)), DeleteUnlessForked<Connection>()};
}

constexpr const char* kClassDoc =
    R"(A connection to the scheduler of a running job; connect() makes it.

Several threads may use it; one question is asked at a time.
)";

constexpr const char* kConnectDoc = R"(Connects to the scheduler of a running job.

address: "tcp://HOST:PORT" or "ipc://PATH", as hdps-scheduler printed it.
keys: the folder of hdps keygen with the key of a reader or an admin; None: the job has no keys.
insecure: allows an address beyond this machine without keys.

Raises JobError if the address or the keys are wrong. Whether a scheduler is there shows when it
is asked.

>>> hdps.connect("tcp://127.0.0.1:7900").address
'tcp://127.0.0.1:7900'
)";

constexpr const char* kStatusDoc =
    R"(Returns job, state, view, step and members of the job as a dict.

`members` is a list of dicts with name, step and silent_ms. Raises RunError if nobody answers within
5 seconds.
)";

constexpr const char* kWhyDoc = R"(Returns what the job waits for, as hdps why --json prints it.

`waits` says whether it does, `explanation` is a sentence, `causes` names the members at fault, and
`members` has a dict for each. Takes about a second. Raises RunError if the scheduler cannot be
reached.
)";

}  // namespace

void AddConnection(py::module_& module) {
  py::class_<Connection, ConnectionPointer>(module, "Connection", kClassDoc)
      .def_property_readonly("address", &Connection::address, "The scheduler's address.")
      .def(
          "status",
          [](Connection& self) {
            return FromJson(ValueOf(InLibrary([&self] { return self.Status(); })));
          },
          kStatusDoc)
      .def(
          "why",
          [](Connection& self) {
            return FromJson(ValueOf(InLibrary([&self] { return self.Why(); })));
          },
          kWhyDoc)
      .attr("__module__") = "hdps";
  module.def("connect", &Connect, py::arg("address"), py::arg("keys") = py::none(), py::kw_only(),
             py::arg("insecure") = false, kConnectDoc);
}

}  // namespace hdps::python
