// Says where the value of a job's setting comes from.
#pragma once

#include <string>

namespace hdps {

struct SettingOrigin {
  std::string path, value;  // "train.batch_size", "256"
  std::string from;         // "default", "file", "--set" or "environment"
};

}  // namespace hdps
