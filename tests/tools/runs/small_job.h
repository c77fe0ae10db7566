// A job so small that a test can train it, over the columns y, x, c and d.
#pragma once

#include <string>

namespace hdps {

// `rows` are members of data beside its columns, `of_x` those of the numeric column x.
inline std::string SmallJob(const std::string& rows, const std::string& of_x = "") {
  return R"({
    "name": "small",
    "data": {)" +
         rows + R"(, "columns": [
      {"name": "y", "type": "label"},
      {"name": "x", "type": "numeric")" +
         of_x + R"(},
      {"name": "c"}, {"name": "d"}
    ]},
    "model": {"type": "wide_deep", "embedding_dim": 4, "hidden": [8], "device": "cpu"},
    "train": {"batch_size": 64, "epochs": 2},
    "parallel": {"gradients_mean": true},
    "cluster": {"shards": 4, "heartbeat_ms": 50}
  })";
}

}  // namespace hdps
