// Gives the messages of partitions of one Kafka topic.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/protocol/manifest_parts.h"

namespace hdps {

struct TopicMessage {
  int64_t offset = 0;
  int64_t time_ms = 0;    // Since 1970, as the message says; 0: it does not say.
  std::string_view text;  // Valid until the next Take() of its partition.
};

// Is told, for people, what holds a source up: a broker that is away, by name; "": nothing does.
using TellTrouble = std::function<void(const std::string& trouble)>;

// Whoever waits for messages looks up so often, to tell what it waits for.
inline constexpr int64_t kLookEveryMs = 1000;

// A consumer without a group. It waits for brokers that are away.
//
// Used by one thread, but for Stop().
class MessageSource {
 public:
  virtual ~MessageSource() = default;
  // Returns the number of partitions of the topic. kInvalidArgument: there is no such topic.
  // kCancelled after Stop(), as from the next two.
  virtual Result<uint32_t> CountPartitions() = 0;
  // Returns the offset at which data.kafka.start begins in the partition.
  virtual Result<int64_t> StartOf(uint32_t partition) = 0;
  // Returns the offset of the first message that the partition still has.
  virtual Result<int64_t> FirstOf(uint32_t partition) = 0;
  // Begins to fetch these partitions. Called once, before Take().
  virtual Status Begin(std::span<const PartitionOffset> from) = 0;
  // Returns the next message of the partition; nothing if none has arrived. kCorruption: the
  // partition is gone.
  virtual Result<std::optional<TopicMessage>> Take(uint32_t partition) = 0;
  // Returns the number of messages behind `next` in the partition, as far as is known.
  virtual uint64_t Behind(const PartitionOffset& next) = 0;
  // Waits until a message may have arrived since the last Wait(), but no longer than `ms` or about
  // kLookEveryMs; below 0: about as long. Returns false, at once, after Stop().
  virtual bool Wait(int64_t ms) = 0;
  // Ends all waits for good. Any thread may call it.
  virtual void Stop() = 0;
};

}  // namespace hdps
