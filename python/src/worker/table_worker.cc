// Calls a table worker, and raises what its status says.
#include "python/src/worker/table_worker.h"

#include <pybind11/stl.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "common/job/job_spec.h"
#include "common/job/spec/table_spec.h"
#include "python/src/arguments.h"
#include "python/src/arrays.h"
#include "python/src/bindings.h"
#include "python/src/entry.h"
#include "python/src/status.h"
#include "python/src/values/numbers_in.h"

namespace hdps::python {
namespace py = pybind11;
namespace {

using Wanted = NumbersIn::Wanted;

std::string Place(const char* call, const std::string& table, const char* argument) {
  return std::string(call) + "(\"" + table + "\"): " + argument;
}

std::string ShapeText(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t length : shape) text += (text.empty() ? "" : ", ") + std::to_string(length);
  return "[" + text + "]";
}

// The keys of several tables, which stay in Python's memory if they lie so.
class Asked {
 public:
  Asked(const char* call, const Job& job, const py::list& lists) {
    for (const py::handle each : lists) {
      const auto pair = py::cast<py::tuple>(each);
      if (!py::isinstance<py::str>(pair[0])) {
        RaiseTypeError(std::string(call) + "(): the name of a table is a " +
                       Py_TYPE(pair[0].ptr())->tp_name + ": expected a str");
      }
      const std::string table = TextOf(pair[0]);
      const TableId id = TableNamed(job, table);
      tables_.push_back(table);
      numbers_.push_back(
          std::make_unique<NumbersIn>(pair[1], Wanted::kKeys, Place(call, table, "keys")));
      keys_.push_back({id, numbers_.back()->keys()});
    }
  }
  const std::vector<AskedKeys>& keys() const { return keys_; }
  const std::string& table(size_t i) const { return tables_[i]; }
  size_t copied_bytes() const {
    size_t bytes = 0;
    for (const auto& numbers : numbers_) bytes += numbers->copied_bytes();
    return bytes;
  }

 private:
  std::vector<std::string> tables_;
  std::vector<std::unique_ptr<NumbersIn>> numbers_;
  std::vector<AskedKeys> keys_;
};

// Raises JobError unless there is a row of `dim` numbers for each of `rows`.
void RequireRows(const NumbersIn& given, size_t rows, uint32_t dim, const std::string& where,
                 const char* of) {
  const bool none = rows == 0 && given.size() == 0;
  const bool right =
      !given.shape().empty() && given.shape().back() == int64_t{dim} && given.size() == rows * dim;
  if (none || right) return;
  RaiseMistake(where + " have the shape " + ShapeText(given.shape()) + "; expected [" +
               std::to_string(rows) + ", " + std::to_string(dim) + "], a row for each " + of);
}

RowsPointer Held(PulledRows rows, const void* puller, bool look, const std::string& table) {
  auto held = std::make_shared<HeldRows>();
  *held = {puller, look, table, std::move(rows), {}};
  return held;
}

}  // namespace

// Marks a call as running.
class HeldWorker::InCall {
 public:
  InCall(HeldWorker& worker, const char* name) : worker_(worker) {
    worker.RequireFree(name);
    worker.in_call_ = name;  // Nobody else sets it meanwhile, for the interpreter's lock is held.
  }
  ~InCall() { worker_.in_call_ = nullptr; }
  InCall(const InCall&) = delete;
  InCall& operator=(const InCall&) = delete;

 private:
  HeldWorker& worker_;
};

HeldWorker::HeldWorker(std::shared_ptr<HeldJob> job, std::unique_ptr<ProgramCalls> calls,
                       std::shared_ptr<WaitingLines> lines, std::unique_ptr<TableSeat> seat)
    : job_(std::move(job)),
      calls_(std::move(calls)),
      lines_(std::move(lines)),
      seat_(std::move(seat)) {
  calls_->SetBefore([this] { Note(); });
  Note();
  SetRestored();
}

HeldWorker::~HeldWorker() {
  if (seat_ == nullptr) return;
  const py::gil_scoped_release released;
  static_cast<void>(seat_->Leave(Status(Code::kUnavailable, "its program has dropped the worker")));
}

void HeldWorker::RequireFree(const char* name) const {
  RefuseFork();
  const char* const running = in_call_;
  if (running != nullptr) {
    RaiseMistake(std::string(name) + "(): this worker is in " + running +
                 "() at the moment; one thread at a time uses a worker, and its functions for the "
                 "state call nothing of it");
  }
  if (seat_ != nullptr) return;
  if (ended_) RaiseEnded(left_because_);
  Raise(Status(Code::kUnavailable,
               std::string(name) + "(): this worker has left its job: " + left_because_));
}

void HeldWorker::Call(const char* name, const std::function<Status(TableWorker&)>& work) {
  const InCall in_call(*this, name);
  Status status;
  {
    const Entry entry;
    status = work(seat_->worker());
    Note();
  }
  lines_->Show();
  if (calls_->raised()) {
    const std::string because = std::string("an exception ended ") + name + "()";
    if (!in_evaluate_) static_cast<void>(Leave(Status(Code::kUnavailable, because), because));
    calls_->RaiseIfAnyRaised();
  }
  if (status.ok()) return;
  if (status.code() == Code::kCancelled) RaiseStanding();
  if (status.code() != Code::kInvalidArgument && !in_evaluate_) {
    static_cast<void>(Leave(status, status.message()));
  }
  Raise(status);
}

void HeldWorker::Note() {
  const TableWorker& worker = seat_->worker();
  rank_ = worker.rank();
  workers_ = worker.workers();
  clock_ = worker.clock();
  evaluation_due_ = worker.evaluation_due();
  ends_ = worker.standing() == Standing::kEnded;
  copied_below_ = worker.copied_bytes();
}

void HeldWorker::SetRestored() {
  const std::optional<std::string>& bytes = seat_->worker().restored();
  // A program without a state has an empty one.
  restored_ = !bytes || bytes->empty() ? py::object(py::none()) : py::object(py::bytes(*bytes));
}

void HeldWorker::RaiseStanding() {
  TableWorker& worker = seat_->worker();
  const std::string reason = worker.reason();
  const Standing standing = worker.standing();
  if (standing == Standing::kWentBack) {
    SetRestored();
    const Clock step = worker.clock();
    if (!in_evaluate_) worker.GoOn();
    Note();
    RaiseWentBack(reason, step, restored_);
  }
  if (standing == Standing::kEnded) {
    if (!in_evaluate_) {
      RaiseUnlessOk(Leave(Status(), reason));
      ended_ = true;
    }
    RaiseEnded(reason);
  }
  const Status failure(Code::kUnavailable, reason);
  if (!in_evaluate_) static_cast<void>(Leave(failure, reason));
  Raise(failure);
}

Status HeldWorker::Leave(const Status& failure, const std::string& because) {
  left_because_ = because;
  const std::unique_ptr<TableSeat> seat = std::move(seat_);
  Status end;
  {
    const py::gil_scoped_release released;
    end = seat->Leave(failure);
  }
  evaluation_due_ = false;
  calls_->SetState(py::none());  // It may be what keeps this worker.
  lines_->Show();
  return end;
}

py::list HeldWorker::Pull(const py::list& lists, bool train) {
  const Asked asked("pull", job_->job, lists);
  CountCopy(asked.copied_bytes());
  std::vector<RowsPointer> pulled;
  Call("pull", [&](TableWorker& worker) -> Status {
    HDPS_ASSIGN_OR_RETURN(std::vector<PulledRows> rows,
                          worker.Pull(asked.keys(), train ? PullFor::kStep : PullFor::kLook));
    for (size_t i = 0; i < rows.size(); ++i) {
      pulled.push_back(Held(std::move(rows[i]), this, !train, asked.table(i)));
    }
    return {};
  });
  py::list list;
  for (RowsPointer& rows : pulled) list.append(py::cast(std::move(rows)));
  return list;
}

void HeldWorker::Prefetch(const py::list& lists) {
  const Asked asked("prefetch", job_->job, lists);
  CountCopy(asked.copied_bytes());
  Call("prefetch", [&](TableWorker& worker) { return worker.Prefetch(asked.keys()); });
}

void HeldWorker::Push(const HeldRows& rows, const py::object& gradients, bool each) {
  const std::string where = Place("push", rows.table, "gradients");
  if (rows.puller != this) {
    RaiseMistake("push(\"" + rows.table +
                 "\"): another worker has pulled these rows; push them there");
  }
  if (rows.look) {
    RaiseMistake(
        "push(\"" + rows.table +
        "\"): the rows were pulled with train=False, which only looks; pull them for a step");
  }
  const NumbersIn given(gradients, Wanted::kFloats, where);
  CountCopy(given.copied_bytes());
  if (each) {
    RequireRows(given, rows.rows.positions.size(), rows.rows.dim, where, "key that was asked for");
  } else {
    RequireRows(given, rows.rows.keys.size(), rows.rows.dim, where, "key of the pull");
  }
  Call("push", [&](TableWorker& worker) {
    return each ? worker.PushEach(rows.rows, given.floats())
                : worker.Push(rows.rows, given.floats());
  });
}

void HeldWorker::PushKeys(const std::string& table, const py::object& keys,
                          const py::object& gradients) {
  const TableId id = TableNamed(job_->job, table);
  const NumbersIn of(keys, Wanted::kKeys, Place("push", table, "keys"));
  const std::string where = Place("push", table, "gradients");
  const NumbersIn given(gradients, Wanted::kFloats, where);
  CountCopy(of.copied_bytes() + given.copied_bytes());
  RequireRows(given, of.size(), job_->job.tables[id.value].dim, where, "key");
  Call("push", [&](TableWorker& worker) { return worker.Push(id, of.keys(), given.floats()); });
}

void HeldWorker::Store(const std::string& table, const py::object& keys, const py::object& rows) {
  const TableId id = TableNamed(job_->job, table);
  const NumbersIn of(keys, Wanted::kKeys, Place("store", table, "keys"));
  const std::string where = Place("store", table, "rows");
  const NumbersIn given(rows, Wanted::kFloats, where);
  CountCopy(of.copied_bytes() + given.copied_bytes());
  RequireRows(given, of.size(), job_->job.tables[id.value].dim, where, "key");
  Call("store", [&](TableWorker& worker) { return worker.Store(id, of.keys(), given.floats()); });
}

void HeldWorker::Advance(const py::object& examples) {
  const auto whole = py::reinterpret_steal<py::object>(PyNumber_Index(examples.ptr()));
  const unsigned long long count = whole ? PyLong_AsUnsignedLongLong(whole.ptr()) : 0;
  if (PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    RaiseTypeError("advance(): examples is " + TextOf(py::repr(examples)) +
                   ": expected a whole number of examples, from 0");
  }
  const Clock before = clock_;
  Call("advance", [&](TableWorker& worker) -> Status {
    const Status status = worker.Advance(count);
    // The job has ended with this step, which counts: the next call says so.
    const bool last = worker.standing() == Standing::kEnded && worker.clock() > before;
    return last ? Status() : status;
  });
}

void HeldWorker::GiveUp() {
  if (seat_ == nullptr) return;
  Call("give_up", [](TableWorker& worker) {
    worker.GiveUpStep();
    return Status();
  });
}

void HeldWorker::Checkpoint(const py::object& extra) {
  std::optional<std::string> state;
  if (!extra.is_none()) state = BytesOf(extra, "checkpoint(): extra");
  Call("checkpoint", [&](TableWorker& worker) { return worker.WantCheckpoint(std::move(state)); });
}

void HeldWorker::Report(const py::list& figures) {
  const auto given = py::cast<OutsideFigures>(figures);
  Call("report", [&](TableWorker& worker) { return worker.Report(given); });
}

Result<OutsideFigures> HeldWorker::Evaluate(const py::object& evaluate) {
  const py::gil_scoped_acquire held;
  Note();
  const char* const name = in_call_.exchange(nullptr);
  in_evaluate_ = true;
  Result<OutsideFigures> figures =
      Status(Code::kUnavailable, "the program's evaluation has raised an exception");
  try {
    figures = py::cast<OutsideFigures>(evaluate());
  } catch (const py::error_already_set& error) {
    if (SaysStanding(error)) {
      // Finish() is over by this, and its caller hears how the job stands.
      figures = Status(Code::kCancelled, "the program's evaluation has heard how the job stands");
    } else {
      calls_->Keep(std::current_exception());
    }
  } catch (...) {
    calls_->Keep(std::current_exception());
  }
  in_evaluate_ = false;
  in_call_ = name;
  return figures;
}

void HeldWorker::Finish(const py::object& evaluate) {
  if (ended_) return;
  Call("finish", [&](TableWorker& worker) {
    if (worker.standing() == Standing::kEnded) return Status();
    if (evaluate.is_none()) return worker.Finish();
    return worker.Finish([&] { return Evaluate(evaluate); });
  });
  RaiseUnlessOk(Leave(Status(), "the job has ended: all workers have finished"));
  ended_ = true;
}

void HeldWorker::Close(const std::string& reason) {
  if (seat_ == nullptr) return;
  const InCall in_call(*this, "close");
  if (in_evaluate_) RaiseMistake("close(): this worker is in finish() at the moment");
  const bool ended = seat_->worker().standing() == Standing::kEnded;
  static_cast<void>(Leave(ended ? Status() : Status(Code::kUnavailable, reason), "it was closed"));
  ended_ = ended;
}

py::dict HeldWorker::tables() const {
  py::dict tables;
  for (const TableSpec& table : job_->job.tables) {
    if (!table.dense) tables[ToText(table.name)] = table.dim;
  }
  return tables;
}

}  // namespace hdps::python
