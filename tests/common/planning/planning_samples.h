// Small jobs that the tests of planning start from.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/job/job_file.h"
#include "common/job/job_spec.h"

namespace hdps {

// e (three features of dim 4) -> one (8, relu) -> act -> two (6) -> drop -> out.
inline constexpr const char* kTower = R"({
  "data": {"train": ["a.csv"], "columns": [
    {"name": "y", "type": "label"}, {"name": "x", "type": "numeric"},
    {"name": "c"}, {"name": "d"}, {"name": "e"}]},
  "model": {"type": "graph", "tables": [{"name": "t", "dim": 4}], "layers": [
    {"name": "rows", "kind": "embedding", "table": "t"},
    {"name": "one", "inputs": ["rows"], "units": 8},
    {"name": "act", "kind": "activation", "inputs": ["one"], "activation": "relu"},
    {"name": "two", "inputs": ["act"], "units": 6},
    {"name": "drop", "kind": "dropout", "inputs": ["two"]},
    {"name": "out", "inputs": ["drop"], "units": 1}]},
  "parallel": {"parallel_mode": "hybrid_parallel", "dense_exchange": "allreduce"}
})";

inline Job GoodJob(const std::vector<std::string>& overrides, const std::string& json = kTower) {
  Result<Job> job = ParseJob(json, "job.json", overrides);
  EXPECT_TRUE(job.ok()) << job.status().message();
  return job.ok() ? *job : Job();
}

// A model that is given to PlacedJobOf().
inline constexpr const char* kWideDeep = R"({"type": "wide_deep"})";

// Returns a job over the features c and d that is placed automatically.
inline Job PlacedJobOf(const std::string& model, const std::vector<std::string>& overrides = {}) {
  const std::string json = R"({"data": {"train": ["a.csv"], "columns": [
      {"name": "y", "type": "label"}, {"name": "c"}, {"name": "d"}]},
      "train": {"batch_size": 4096}, "model": )" +
                           model + R"(, "parallel": {"parallel_mode": "auto_parallel"}})";
  return GoodJob(overrides, json);
}

}  // namespace hdps
