// A model as Python holds it, and the two halves of its binding.
#pragma once

#include <pybind11/pybind11.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "common/job/job_spec.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "tools/scoring/row_scorer.h"

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

// Adds `tables`, lookup(), contains() and keys().
void AddTables(pybind11::class_<HeldModel, ModelPointer>& model);

// Adds item_vectors(), user_vectors() and export().
void AddVectors(pybind11::class_<HeldModel, ModelPointer>& model);

// Returns the documentation with an example: `lines` follow those that make a model.
std::string WithExample(const std::string& doc, const std::string& lines);

}  // namespace hdps::python
