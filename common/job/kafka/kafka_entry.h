// Reads what a job says about a topic of Kafka.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/platform/file_system.h"

namespace hdps {

struct DataSpec;

// Returns true for an entry that names a topic: "kafka://broker:9092/clicks".
bool NamesTopic(std::string_view entry);

// The parts of such an entry.
struct KafkaEntry {
  std::string brokers;  // "HOST:PORT,HOST:PORT"
  std::string topic;
};
// kInvalidArgument says which part is missing or has characters that no such name has.
Result<KafkaEntry> ReadKafkaEntry(const std::string& entry);

// Words of data.kafka.start.
inline constexpr const char* kKafkaEarliest = "earliest";
inline constexpr const char* kKafkaLatest = "latest";

// Reads a time such as 2026-01-31T00:00:00Z, in milliseconds since 1970; nothing if it is none.
std::optional<int64_t> ReadUtcTime(const std::string& text);

// Returns true for a setting of librdkafka that decides which messages are read, and that a job
// therefore cannot set: "group.id".
bool IsOwnKafkaSetting(std::string_view name);

// Reads data.kafka.secrets, a JSON object of settings by name; an empty path has none.
// kInvalidArgument for a file that others may read or write, or that is no such object.
Result<std::map<std::string, std::string>> ReadKafkaSecrets(FileSystem& files,
                                                            const std::string& path);

// Is true if the job reads a topic.
bool ReadsTopic(const DataSpec& data);
// Returns for how many seconds a worker may wait for messages of its partitions, while the others
// wait for it: data.kafka.flush_s, or a day without it; 0 if the job reads no topic.
uint32_t MessagesAwaitedS(const DataSpec& data);

}  // namespace hdps
