// Binds hdps.Pulled, and the compiled part of hdps.Worker.
#include <pybind11/stl.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "python/src/arguments.h"
#include "python/src/arrays.h"
#include "python/src/bindings.h"
#include "python/src/entry.h"
#include "python/src/values/numbers_in.h"
#include "python/src/worker/table_worker.h"

namespace hdps::python {
namespace py = pybind11;
namespace {

using Wanted = NumbersIn::Wanted;

template <typename T>
Array ArrayOver(const RowsPointer& held, std::span<const T> values, std::vector<int64_t> shape) {
  return Array::Over(held, values, std::move(shape));
}

int64_t Length(size_t size) { return static_cast<int64_t>(size); }

void AddPulled(py::module_& module) {
  py::class_<HeldRows, RowsPointer>(module, "Pulled",
                                    R"(The rows of one table that Worker.pull() returns.

Rows and keys are memory of hdps, in which no copy has been made. They stay what they were when the
job goes on. Rows may lie in the reply of a server, whose memory is kept as long as they are.
)")
      .def_property_readonly(
          "table", [](const HeldRows& held) { return ToText(held.table); }, "The table's name.")
      .def_property_readonly(
          "keys",
          [](const RowsPointer& held) {
            return ArrayOver(held, held->rows.keys, {Length(held->rows.keys.size())});
          },
          "The distinct keys: uint64 [m].")
      .def_property_readonly(
          "rows",
          [](const RowsPointer& held) {
            return ArrayOver(held, held->rows.rows,
                             {Length(held->rows.keys.size()), int64_t{held->rows.dim}});
          },
          "A row for each of `keys`: float32 [m, dim].")
      .def_property_readonly(
          "positions",
          [](const RowsPointer& held) {
            const std::span<const uint32_t> found = held->rows.positions;
            if (held->positions.empty()) held->positions.assign(found.begin(), found.end());
            return ArrayOver(held, std::span<const int64_t>(held->positions),
                             {Length(held->positions.size())});
          },
          "Which of `keys` each key is that was asked for: int64 [n].")
      .def("__repr__",
           [](const HeldRows& held) {
             return py::str("<hdps.Pulled {!r}, {} rows of {}>")
                 .format(held.table, held.rows.keys.size(), held.rows.dim);
           })
      .attr("__module__") = "hdps";
}

}  // namespace

void AddTableWorker(py::module_& module) {
  AddPulled(module);
  py::class_<HeldWorker, std::unique_ptr<HeldWorker, DeleteUnlessForked<HeldWorker>>>(
      module, "TableWorker", "The compiled part of hdps.Worker, which has the documentation.")
      .def_property_readonly("rank", &HeldWorker::rank)
      .def_property_readonly("workers", &HeldWorker::workers)
      .def_property_readonly("clock", &HeldWorker::clock)
      .def_property_readonly("job", &HeldWorker::job)
      .def_property_readonly("tables", &HeldWorker::tables)
      .def_property_readonly("restored", &HeldWorker::restored)
      .def_property_readonly("evaluation_due", &HeldWorker::evaluation_due)
      .def_property_readonly("ended", &HeldWorker::ended)
      .def_property_readonly("copied_bytes", &HeldWorker::copied_bytes)
      .def_property("state", &HeldWorker::state, &HeldWorker::SetState)
      .def("pull", &HeldWorker::Pull, py::arg("asked"), py::arg("train"))
      .def("prefetch", &HeldWorker::Prefetch, py::arg("asked"))
      .def("push", &HeldWorker::Push, py::arg("pulled"), py::arg("gradients"), py::arg("each"))
      .def("push_keys", &HeldWorker::PushKeys, py::arg("table"), py::arg("keys"),
           py::arg("gradients"))
      .def("store", &HeldWorker::Store, py::arg("table"), py::arg("keys"), py::arg("rows"))
      .def("advance", &HeldWorker::Advance, py::arg("examples"))
      .def("give_up", &HeldWorker::GiveUp)
      .def("checkpoint", &HeldWorker::Checkpoint, py::arg("extra"))
      .def("report", &HeldWorker::Report, py::arg("figures"))
      .def("finish", &HeldWorker::Finish, py::arg("evaluate"))
      .def("close", &HeldWorker::Close, py::arg("reason"));
  module.def(
      "numbers_at",
      [](const py::object& given, bool keys) {
        const NumbersIn numbers(given, keys ? Wanted::kKeys : Wanted::kFloats, "given");
        const void* const at =
            keys ? static_cast<const void*>(numbers.keys().data()) : numbers.floats().data();
        return std::pair(reinterpret_cast<uintptr_t>(at), numbers.copied());
      },
      py::arg("given"), py::arg("keys"),
      "Returns the address at which hdps reads keys, or gradients, and whether that is a copy.");
}

}  // namespace hdps::python
