// Stands for the consumer where the program is built without librdkafka.
#include "worker/data/kafka/rdkafka_source.h"

namespace hdps {

Result<std::unique_ptr<MessageSource>> NewRdkafkaSource(const std::string& entry, const KafkaSpec&,
                                                        FileSystem&, TellTrouble) {
  return Status(Code::kInvalidArgument,
                "'" + entry +
                    "' is a topic of Kafka, and this program was built without librdkafka: "
                    "scripts/install_deps.sh --kafka, then build again (docs/data.md, Kafka)");
}

}  // namespace hdps
