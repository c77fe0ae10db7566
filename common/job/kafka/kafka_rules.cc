// The settings of a topic of Kafka, and their checks.
#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <string>

#include "common/job/job_facts.h"
#include "common/job/job_spec.h"
#include "common/job/kafka/kafka_entry.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/job/text/job_sections.h"
#include "common/job/text/setting_table.h"

namespace hdps {
namespace {

constexpr uint32_t kPartitionsMax = 65536;

std::optional<uint32_t> PartitionIn(const std::string& name) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return number < kPartitionsMax ? std::optional(number) : std::nullopt;
}

// Returns true for an object of offsets by partition.
bool AreOffsets(const JsonValue& value) {
  if (value.kind != JsonValue::Kind::kObject || value.items.empty()) return false;
  for (size_t i = 0; i < value.items.size(); ++i) {
    const JsonValue& offset = value.items[i];
    if (!PartitionIn(value.names[i]) || offset.kind != JsonValue::Kind::kInteger) return false;
    if (offset.negative || offset.magnitude > std::numeric_limits<int64_t>::max()) return false;
  }
  return true;
}

bool IsStart(const JsonValue& value) {
  if (value.kind != JsonValue::Kind::kText) return AreOffsets(value);
  return value.text == kKafkaEarliest || value.text == kKafkaLatest || ReadUtcTime(value.text);
}

bool AreTexts(const JsonValue& value) {
  return value.kind == JsonValue::Kind::kObject &&
         std::ranges::all_of(value.items, [](const JsonValue& item) {
           return item.kind == JsonValue::Kind::kText;
         });
}

void ReadStart(const JsonValue& value, KafkaSpec* kafka) {
  kafka->start = KafkaSpec().start;
  kafka->start_offsets.clear();
  if (value.kind == JsonValue::Kind::kText) {
    kafka->start = value.text;
    return;
  }
  for (size_t i = 0; i < value.items.size(); ++i) {
    kafka->start_offsets[*PartitionIn(value.names[i])] =
        static_cast<int64_t>(value.items[i].magnitude);
  }
}

JsonValue PrintStart(const KafkaSpec& kafka) {
  if (kafka.start_offsets.empty()) return JsonValue::Text(kafka.start);
  JsonValue object = JsonValue::Object();
  for (const auto& [partition, offset] : kafka.start_offsets) {
    object.Set(std::to_string(partition), JsonValue::Signed(offset));
  }
  return object;
}

}  // namespace

Section KafkaSection() {
  SettingTable<KafkaSpec> kafka("kafka", "data.kafka");
  kafka.AddConverted(
      "start", ValueKind::kText,
      "Where a job begins that goes on from no checkpoint: earliest, latest, a time such as "
      "2026-01-31T00:00:00Z, or the offset of each partition, {\"0\": 1200, \"1\": 1187}.",
      ReadStart, PrintStart,
      Checked{"earliest, latest, a time such as \"2026-01-31T00:00:00Z\", or an object of "
              "partitions and offsets such as {\"0\": 1200, \"1\": 1187}",
              IsStart},
      Hashed::kNothing);
  kafka.Add("flush_s", &KafkaSpec::flush_s,
            "A worker whose partitions have nothing new gives after so many seconds what it has of "
            "its part of a step. 0: it waits, and a topic trains the same again.",
            Range{0, 3600}, Hashed::kNothing);
  kafka.AddConverted(
      "settings", ValueKind::kByName,
      "Of librdkafka by its own names, {\"security.protocol\": \"ssl\"}.",
      [](const JsonValue& value, KafkaSpec* spec) {
        spec->settings.clear();
        for (size_t i = 0; i < value.items.size(); ++i) {
          spec->settings[value.names[i]] = value.items[i].text;
        }
      },
      [](const KafkaSpec& spec) { return PrintValue(spec.settings); },
      Checked{"an object of texts", AreTexts}, Hashed::kNothing);
  kafka.Add("secrets", &KafkaSpec::secrets,
            "A file with more of them, a JSON object of texts, that others than its owner may not "
            "read. It is sought from the job file's folder, then from the working directory.",
            Hashed::kNothing);
  return kafka.Done();
}

Status CheckKafka(const JobSource& source, const Job& job) {
  const DataSpec& data = job.data;
  const auto refuse = [&](const char* place, const std::string& value, const std::string& mend) {
    return Refuse(source, place, value + " with a topic of Kafka: " + mend);
  };
  for (const std::string& entry : data.eval) {
    if (NamesTopic(entry)) return refuse("data.eval", Quoted(entry), "evaluations read files");
  }
  for (const EvalSetSpec& set : data.eval_sets) {
    if (std::ranges::any_of(set.files, NamesTopic)) {
      return refuse("data.eval_sets", Quoted(set.name), "evaluations read files");
    }
  }
  if (!ReadsTopic(data)) {
    if (data.kafka == KafkaSpec()) return {};
    return Refuse(source, "data.kafka",
                  "counts only where data.train is an entry kafka://HOST:PORT/TOPIC");
  }
  if (data.train.size() != 1) {
    return refuse("data.train", std::to_string(data.train.size()) + " entries",
                  "it stands alone in the list");
  }
  const Result<KafkaEntry> entry = ReadKafkaEntry(data.train[0]);
  if (!entry.ok()) return Refuse(source, "data.train.0", entry.status().message());
  for (const auto& [name, value] : data.kafka.settings) {
    if (!IsOwnKafkaSetting(name)) continue;
    return Refuse(source, "data.kafka.settings", Quoted(name) + " is set by hdps itself");
  }
  if (IsTablesJob(job)) {
    return refuse("data.train", Quoted(data.train[0]),
                  "the program that has the model reads the data; let it read the topic");
  }
  if (data.follow) return refuse("data.follow", "true", "it never ends; leave it out");
  if (data.format == DataFormat::kIdx || data.format == DataFormat::kParquet) {
    return refuse("data.format", std::string(WordOf(data.format)),
                  "a message is a line of text, a JSON object or a tf.train.Example; choose csv, "
                  "jsonl or tfrecord");
  }
  if (data.header) return refuse("data.header", "true", "a message is a row; set it to false");
  if (job.train.epochs != 1) {
    return refuse("train.epochs", std::to_string(job.train.epochs), "it is read once; set it to 1");
  }
  if (job.train.evals_per_epoch > 0) {
    return refuse("train.evals_per_epoch", std::to_string(job.train.evals_per_epoch),
                  "its rows cannot be counted; use train.eval_every_steps");
  }
  if (data.validation_share > 0) {
    return refuse("data.validation_share", "a share", "name files in data.eval");
  }
  if (data.negatives.per_positive > 0) {
    return refuse("data.negatives.per_positive", std::to_string(data.negatives.per_positive),
                  "examples are made with items of all rows, which have not come yet; set it to "
                  "0, or use the loss sampled_softmax");
  }
  if (job.parallel.dataset_strategy == DatasetStrategy::kFullBatch) {
    return refuse("parallel.dataset_strategy", "full_batch",
                  "each partition belongs to one worker; choose data_parallel");
  }
  return {};
}

}  // namespace hdps
