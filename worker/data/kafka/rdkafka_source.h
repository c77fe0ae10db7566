// Makes a source of messages by librdkafka.
#pragma once

#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/platform/file_system.h"
#include "worker/data/kafka/message_source.h"

namespace hdps {

struct KafkaSpec;

// Makes the consumer of an entry kafka://..., which connects on its own threads. kInvalidArgument:
// a setting that librdkafka refuses, a file of secrets that others may read, or a program that was
// built without librdkafka. `tell` is called by the thread that uses the source.
Result<std::unique_ptr<MessageSource>> NewRdkafkaSource(const std::string& entry,
                                                        const KafkaSpec& kafka, FileSystem& files,
                                                        TellTrouble tell = {});

}  // namespace hdps
