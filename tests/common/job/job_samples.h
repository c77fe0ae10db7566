// Small jobs that the tests of job files start from.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/platform/file_system.h"

namespace hdps {

inline constexpr const char* kShort = R"({
  "name": "small",
  "data": {
    "train": ["a.csv"],
    "columns": [
      {"name": "y", "type": "label"},
      {"name": "x", "type": "numeric"},
      {"name": "c"}, {"name": "d"}, {"name": "e"}
    ],
    "features": [
      {"name": "range", "kind": "bucketized", "from": ["x"], "boundaries": [1, 2.5, 4]},
      {"name": "cross", "from": ["c", "range"], "hash_buckets": 1000},
      {"name": "pair", "from": ["c", "d"]}
    ]
  },
  "model": {"type": "wide_deep"}
})";

inline constexpr const char* kGraph =
    R"(model={"type": "graph", "tables": [{"name": "t"}], "layers": [)"
    R"({"name": "e", "kind": "embedding", "table": "t"},)"
    R"({"name": "out", "inputs": ["e"], "units": 1}]})";

inline Job Good(const std::vector<std::string>& overrides, const std::string& json = kShort) {
  Result<Job> job = ParseJob(json, "job.json", overrides);
  EXPECT_TRUE(job.ok()) << job.status().message();
  return job.ok() ? *job : Job();
}

inline std::string Bad(const std::vector<std::string>& overrides,
                       const std::string& json = kShort) {
  const Result<Job> job = ParseJob(json, "job.json", overrides);
  EXPECT_FALSE(job.ok());
  EXPECT_EQ(job.status().code(), Code::kInvalidArgument);
  return job.status().message();
}

inline std::string ReadText(const std::string& path) {
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  const Result<std::string> text =
      ReadWholeFile(*files, JoinPath(HDPS_SOURCE_DIR, path), uint64_t{1} << 20);
  EXPECT_TRUE(text.ok()) << text.status().message();
  return text.ok() ? *text : "";
}

}  // namespace hdps
