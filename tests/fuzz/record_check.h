// Checks records of typed cells and files of them, for the targets of their formats.
#pragma once

#include <glog/logging.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "common/job/spec/data_spec.h"
#include "tests/fuzz/target.h"
#include "worker/data/batch_reader.h"
#include "worker/data/records/record_cells.h"
#include "worker/data/records/record_columns.h"

namespace hdps::fuzz {

inline constexpr const char* kPath = "data/rows";

inline DataSpec RecordSpec(DataFormat format) {
  DataSpec data;
  data.format = format;
  data.shuffle_rows = 4;
  data.max_bad_rows = std::numeric_limits<int64_t>::max();
  data.train = {kPath};
  for (const auto& [name, type] : {std::pair{"y", ColumnType::kLabel},
                                   {"x", ColumnType::kNumeric},
                                   {"c", ColumnType::kCategorical},
                                   {"t", ColumnType::kMulti}}) {
    ColumnSpec& column = data.columns.emplace_back();
    column.name = name;
    column.type = type;
  }
  return data;
}

// Checks that a record gives whole cells, one a column, or an error and nothing.
inline bool CheckRecord(const DataSpec& data, std::string_view record) {
  CellLineWriter line;
  if (NewRecordCells(data, /*labels_read=*/true)->Write(record, &line)) {
    CHECK_EQ(line.size(), 0u);
    return false;
  }
  std::string_view rest(line.data(), line.size());
  for (size_t c = 0; c < RecordColumns(data).size(); ++c) CHECK(TakeCell(&rest));
  CHECK(rest.empty());
  return true;
}

inline Verdict ReadRecords(const DataSpec& data, std::string_view bytes) {
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  PutFile(*files, kPath, bytes);
  const auto reader = NewBatchReader(*files, data, data.train, {.batch_size = 3});
  CHECK(reader.ok()) << reader.status().message();
  const Status started = (*reader)->StartEpoch(0, 0);
  if (!started.ok()) return Refused(started, Code::kInvalidArgument);
  uint64_t examples = 0;
  while (true) {
    const Result<std::optional<Batch>> batch = (*reader)->Next();
    if (!batch.ok()) return Refused(batch.status(), Code::kInvalidArgument);
    if (!batch->has_value()) break;
    examples += (*batch)->num_examples;
  }
  return examples > 0 ? Verdict::kAccepted : Verdict::kRefused;
}

}  // namespace hdps::fuzz
