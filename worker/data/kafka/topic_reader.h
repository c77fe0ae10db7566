// Reads one worker's batches from its partitions of a Kafka topic.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/platform/monotonic_clock.h"
#include "common/protocol/manifest_parts.h"
#include "worker/data/batch_reader.h"
#include "worker/data/kafka/message_source.h"

namespace hdps {

// What a reader of a topic tells after each step, and while it waits for messages.
struct TopicFigures {
  uint64_t behind = 0;  // Messages in this worker's partitions that were not read yet.
  // How long ago the message was written behind which the oldest of them is; 0 if there are none.
  double behind_s = 0;
  uint64_t new_missing = 0;  // Messages found missing since the last figures.
};

// What reading a topic needs beside the job.
struct TopicReading {
  // Where to go on, for the partitions of all workers; empty: data.kafka.start tells.
  std::vector<PartitionOffset> from;
  // These are the offsets behind the first steps, which another process has read and pushed to some
  // servers, so that the same messages are read again. Each names all of this worker's partitions.
  std::vector<std::vector<PartitionOffset>> step_ends = {};
  MonotonicClock* clock = nullptr;                             // Outlives the reader.
  std::function<void(const TopicFigures& figures)> tell = {};  // May be empty.
  // Is called while messages are waited for, with the place of the last one, as RowWait is; with ""
  // when there was one. May be empty.
  std::function<void(const std::string& behind)> await = {};
  TellTrouble trouble = {};  // May be empty.
  // Makes the source; empty: librdkafka's, of the entry of data.train.
  std::function<Result<std::unique_ptr<MessageSource>>()> open = {};
};

// Step b of a worker has as many messages as the step has rows for its part, or fewer: see
// PartitionTurns. Part p of N has the partitions congruent to p modulo N. A step begins with the
// partition at which the former one would have ended if it was full, which follows from the step's
// number. Its rows are in the order of the turns, also where messages of a partition came late.
// Batch::messages says what it has of the partitions; a bad row and an empty message are part of
// it.
//
// Requires: options.topic. kInvalidArgument from StartEpoch(): no such topic, or a number of
// partitions that is no multiple of the parts'. kCorruption: a partition of `from` is gone; from
// Next(), a message of `step_ends` is. An epoch can be started once.
Result<std::unique_ptr<BatchReader>> NewTopicReader(FileSystem& files, const DataSpec& data,
                                                    const std::vector<std::string>& paths,
                                                    const ReaderOptions& options);

}  // namespace hdps
