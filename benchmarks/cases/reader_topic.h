// The case of `reader` that reads a topic of Kafka beside a file of the same rows.
#pragma once

#include "benchmarks/bench.h"
#include "common/base/status.h"
#include "common/platform/file_system.h"

namespace hdps {

// Reads all whole steps of the topic that `setting.data` names, whose messages are Criteo's lines
// and fill its partitions evenly, in turns with a file of the same lines, which it writes.
Status RunTopicCase(const BenchSetting& setting, FileSystem& files, BenchReport& report);

}  // namespace hdps
