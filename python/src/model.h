// A model as Python holds it, the two halves of its binding, and which rows calls want.
#pragma once

#include <pybind11/pybind11.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/job/job_spec.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "tools/scoring/row_scorer.h"
#include "worker/data/columnar/columns.h"

namespace hdps::python {

// A model and what it needs.
struct HeldModel {
  HeldModel() = default;
  // Leaves all behind in a process that was forked since: its threads, which would be waited for,
  // are not there.
  ~HeldModel() {
    if (getpid() == process) return;
    static_cast<void>(scorer.release());
    static_cast<void>(executor.release());
  }
  HeldModel(const HeldModel&) = delete;
  HeldModel& operator=(const HeldModel&) = delete;

  const Job& job() const { return scorer->job(); }

  const pid_t process = getpid();
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  std::unique_ptr<Executor> executor;
  std::unique_ptr<RowScorer> scorer;
};
using ModelPointer = std::shared_ptr<HeldModel>;

struct WantedRows {
  TableId table;
  std::vector<Key> keys;
  std::optional<std::string> feature;  // The keys are those of values of this feature.
};

// Returns the keys of a column of values of a feature.
using KeysOfValues = std::function<Result<std::vector<Key>>(const std::string& feature,
                                                            std::shared_ptr<const ColumnTable>)>;

// Takes a table by name, and keys, given as whole numbers or as values of a feature, of which
// `keys_of` makes them without the interpreter's lock. Raises JobError for a table or feature that
// the job lacks, and TypeError for keys that are given in no or in both ways, or are no numbers.
WantedRows RowsWanted(const Job& job, const std::string& table, const pybind11::object& keys,
                      const pybind11::object& feature, const pybind11::object& values,
                      const KeysOfValues& keys_of);

// Adds `tables`, lookup(), contains() and keys().
void AddTables(pybind11::class_<HeldModel, ModelPointer>& model);

// Adds item_vectors(), user_vectors() and export().
void AddVectors(pybind11::class_<HeldModel, ModelPointer>& model);

// Returns the documentation with an example: `lines` follow those that make a model.
std::string WithExample(const std::string& doc, const std::string& lines);

}  // namespace hdps::python
