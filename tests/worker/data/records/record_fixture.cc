// Reads and makes what tests of Parquet share.
#include "tests/worker/data/records/record_fixture.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "common/job/job_file.h"
#include "common/job/spec/data_spec.h"
#include "tests/worker/data/data_fixture.h"

namespace hdps {

std::string BytesOfRecordFile(const std::string& name) {
  constexpr uint64_t kBytesMax = uint64_t{1} << 20;
  const std::string path = HDPS_SOURCE_DIR "/tests/worker/data/records/files/" + name;
  const auto bytes = ReadWholeFile(*NewPosixFileSystem(), path, kBytesMax);
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  return bytes.ok() ? *bytes : "";
}

Job RowsJob(const std::string& more) {
  const auto job = ParseJob(R"({
    "data": {"format": "parquet", "train": ["rows.parquet"], "shuffle_rows": 100,
             "columns": [{"name": "click", "type": "label"}, {"name": "user"},
                         {"name": "age", "type": "numeric", "transform": "log1p"},
                         {"name": "color"}, {"name": "tags", "type": "multi"},
                         {"name": "price", "type": "numeric"}, {"name": "active", "type": "skip"},
                         {"name": "whose", "from": "user", "type": "numeric"},
                         {"name": "is_active", "from": "active"}],
             "features": [{"name": "cross", "kind": "crossed", "from": ["user", "color"]}])" +
                                more + R"(},
    "model": {"type": "logistic"}})",
                            "test", {});
  EXPECT_TRUE(job.ok()) << job.status().message();
  return *job;
}

Job NumbersJob(const std::vector<std::string>& names) {
  Job job = RowsJob();
  job.data.columns.clear();
  for (const std::string& name : names) {
    ColumnSpec& column = job.data.columns.emplace_back();
    column.name = name;
    column.type = ColumnType::kNumeric;
  }
  job.data.features.clear();
  return job;
}

}  // namespace hdps
