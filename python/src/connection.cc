// Binds hdps.Connection: questions to the scheduler and the servers of a running job.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/thread_annotations.h"
#include "common/job/job_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/vocabulary.h"
#include "common/platform/file_system.h"
#include "common/process/connections.h"
#include "common/protocol/status_messages.h"
#include "python/src/arguments.h"
#include "python/src/arrays.h"
#include "python/src/bindings.h"
#include "python/src/entry.h"
#include "python/src/model.h"
#include "python/src/status.h"
#include "scheduler/why/explanation.h"
#include "scheduler/why/why_facts.h"
#include "tools/scheduler_question.h"
#include "tools/scoring/feature_keys.h"
#include "tools/status_text.h"
#include "tools/tables/running_rows.h"
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
    MutexLock lock(mutex_);
    return AskStatusJson(*scheduler_);
  }
  Result<std::string> Why() HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    HDPS_ASSIGN_OR_RETURN(const WhyFacts facts, AskWhy(*scheduler_));
    return ToJson(facts.now, Explain(facts));
  }
  // Returns the job with its vocabulary, once a scheduler has told it.
  Result<const Job*> Told() HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (rows_ == nullptr) {
      HDPS_ASSIGN_OR_RETURN(rows_, RunningRows::Open(*scheduler_));
    }
    if (!told_) {
      Job job = rows_->job();
      if (!job.data.vocabulary.file.empty()) {
        HDPS_RETURN_IF_ERROR(LoadVocabulary(*NewPosixFileSystem(), &job.data));
      }
      told_ = std::make_unique<const Job>(std::move(job));
    }
    return told_.get();
  }
  // Requires: Told() was ok.
  Result<std::vector<float>> Rows(const WantedRows& wanted) HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return rows_->Read(wanted.table, wanted.keys, wanted.feature);
  }
  const std::string& address() const { return address_; }

 private:
  Mutex mutex_;
  const std::unique_ptr<SchedulerConnection> scheduler_ HDPS_GUARDED_BY(mutex_);
  std::unique_ptr<RunningRows> rows_ HDPS_GUARDED_BY(mutex_);
  std::unique_ptr<const Job> told_ HDPS_GUARDED_BY(mutex_);  // Does not change once it is there.
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

Array Lookup(Connection& self, const std::string& table, const py::object& keys,
             const py::object& feature, const py::object& values) {
  const Job& job = *ValueOf(InLibrary([&self] { return self.Told(); }));
  const auto keys_of = [&job](const std::string& name, std::shared_ptr<const ColumnTable> column) {
    return KeysOfFeature(job.data, name, std::move(column));
  };
  const WantedRows wanted = RowsWanted(job, table, keys, feature, values, keys_of);
  std::vector<float> rows = ValueOf(InLibrary([&] { return self.Rows(wanted); }));
  const auto dim = static_cast<int64_t>(job.tables[wanted.table.value].dim);
  return Array::Of(std::move(rows), {static_cast<int64_t>(wanted.keys.size()), dim});
}

constexpr const char* kClassDoc =
    R"(A connection to a running job by its scheduler; connect() makes it.

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

constexpr const char* kLookupDoc =
    R"(Returns the weights of rows of a table, as they are in the running job: float32 [n, dim].

table: the name of a sparse table.
keys: whole numbers, as Model.keys() gives them; or feature and values, of which it makes keys.

Servers answer between two steps and make no row: a key without one reads as its initial value.
Rows of several servers may be some steps apart. Raises JobError for a table or feature that is not
there, for a table of which workers keep rows (vocab_cache_size), for keys alone of a table that is
cut by feature, and if the job listens beyond its machine without keys; TypeError for keys that are
no numbers; RunError if there are no servers yet, or if they do not answer within 10 seconds.
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
      .def("lookup", &Lookup, py::arg("table"), py::kw_only(), py::arg("keys") = py::none(),
           py::arg("feature") = py::none(), py::arg("values") = py::none(), kLookupDoc)
      .attr("__module__") = "hdps";
  module.def("connect", &Connect, py::arg("address"), py::arg("keys") = py::none(), py::kw_only(),
             py::arg("insecure") = false, kConnectDoc);
}

}  // namespace hdps::python
