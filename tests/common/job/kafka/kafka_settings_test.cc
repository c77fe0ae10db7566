// Tests job files: topics of Kafka and their settings, and messages for mistakes in them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/job/kafka/kafka_entry.h"
#include "common/job/spec/data_spec.h"
#include "common/platform/file_system.h"
#include "tests/common/job/job_samples.h"

namespace hdps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

const std::string kTopic = "data.train=[\"kafka://b1:9092,b2:9093/clicks\"]";

TEST(KafkaSettingsTest, AnEntryHasBrokersAndATopic) {
  const Result<KafkaEntry> entry = ReadKafkaEntry("kafka://b1:9092,[::1]:9093/day.clicks_1-a");
  ASSERT_TRUE(entry.ok()) << entry.status().message();
  EXPECT_EQ(entry->brokers, "b1:9092,[::1]:9093");
  EXPECT_EQ(entry->topic, "day.clicks_1-a");
}

TEST(KafkaSettingsTest, SettingsAreReadAndPrinted) {
  const KafkaSpec kafka =
      Good({kTopic, "data.kafka.start={\"1\": 7, \"0\": 12}",
            "data.kafka.settings={\"client.id\": \"a\"}", "data.kafka.flush_s=0"})
          .data.kafka;
  EXPECT_THAT(kafka.start_offsets, ElementsAre(Pair(0u, 12), Pair(1u, 7)));
  EXPECT_THAT(kafka.settings, ElementsAre(Pair("client.id", "a")));
  EXPECT_EQ(kafka.flush_s, 0);
  EXPECT_EQ(Good({kTopic, "data.kafka.start=latest"}).data.kafka.start, "latest");
  EXPECT_EQ(Good({kTopic}).data.kafka, KafkaSpec());
}

TEST(KafkaSettingsTest, HowLongOthersMayWaitForAWorkersMessages) {
  EXPECT_EQ(MessagesAwaitedS(Good({kTopic, "data.kafka.flush_s=2.5"}).data), 3u);
  EXPECT_EQ(MessagesAwaitedS(Good({kTopic, "data.kafka.flush_s=0"}).data), 86'400u);
  EXPECT_EQ(MessagesAwaitedS(Good({}).data), 0u);
}

TEST(KafkaSettingsTest, TimesAreThoseOfUtc) {
  EXPECT_EQ(ReadUtcTime("1970-01-02T00:00:01Z"), 86'401'000);
  EXPECT_EQ(ReadUtcTime("1970-01-02T00:00:01Z "), std::nullopt);
  EXPECT_EQ(ReadUtcTime("1970-01-02"), std::nullopt);
}

TEST(KafkaSettingsTest, MistakesAreAnsweredWithPlaceValueAndMend) {
  const struct {
    std::vector<std::string> overrides;
    std::vector<std::string> needles;
  } mistakes[] = {
      {{"data.train=[\"kafka://b1/clicks\"]"}, {"data.train.0", "'b1' is no HOST:PORT"}},
      {{"data.train=[\"kafka://b1:0/clicks\"]"}, {"'b1:0' is no HOST:PORT"}},
      {{"data.train=[\"kafka://b1:1,/clicks\"]"}, {"'' is no HOST:PORT", "kafka://HOST:PORT"}},
      {{"data.train=[\"kafka://b1:9092\"]"}, {"the topic is missing"}},
      {{"data.train=[\"kafka://b1:9092/a/b\"]"}, {"'a/b' is no name of a topic"}},
      {{"data.train=[\"kafka://b1:1/a\", \"c.csv\"]"}, {"data.train", "2 entries", "alone"}},
      {{"data.kafka.flush_s=2"}, {"data.kafka", "counts only where"}},
      {{kTopic, "data.kafka.flush_s=-1"}, {"data.kafka.flush_s", "from 0"}},
      {{kTopic, "data.kafka.start=yesterday"}, {"data.kafka.start", "yesterday", "earliest"}},
      {{kTopic, "data.kafka.start={\"a\": 1}"}, {"data.kafka.start", "partitions and offsets"}},
      {{kTopic, "data.kafka.start={\"0\": -1}"}, {"data.kafka.start", "partitions and offsets"}},
      {{kTopic, "data.kafka.settings={\"group.id\": \"a\"}"}, {"group.id", "set by hdps itself"}},
      {{kTopic, "data.kafka.settings={\"fetch.min.bytes\": 1}"}, {"an object of texts"}},
      {{kTopic, "data.eval=[\"kafka://b1:1/a\"]"}, {"data.eval", "evaluations read files"}},
      {{kTopic, "data.follow=true"}, {"data.follow", "leave it out"}},
      {{kTopic, "data.header=true"}, {"data.header", "set it to false"}},
      {{kTopic, "train.epochs=2"}, {"train.epochs", "2", "set it to 1"}},
      {{kTopic, "train.evals_per_epoch=2", "data.eval=[\"e.csv\"]"}, {"train.evals_per_epoch"}},
      {{kTopic, "data.validation_share=0.1"}, {"data.validation_share", "data.eval"}},
      {{kTopic, "parallel.dataset_strategy=full_batch"}, {"full_batch", "data_parallel"}},
  };
  for (const auto& mistake : mistakes) {
    SCOPED_TRACE(testing::PrintToString(mistake.overrides));
    const std::string message = Bad(mistake.overrides);
    for (const std::string& needle : mistake.needles) EXPECT_THAT(message, HasSubstr(needle));
  }
}

TEST(KafkaSettingsTest, SecretsAreTextsByName) {
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  const auto read = [&](const std::string& text) {
    auto file = files->Create("k.json");
    EXPECT_TRUE((*file)->Append(std::as_bytes(std::span(text))).ok() && (*file)->Close().ok());
    return ReadKafkaSecrets(*files, "k.json");
  };
  EXPECT_TRUE(ReadKafkaSecrets(*files, "")->empty());
  EXPECT_THAT(*read(R"({"sasl.password": "x"})"), ElementsAre(Pair("sasl.password", "x")));
  for (const char* const text : {"", "[]", R"({"sasl.password": 5})", R"({"group.id": "x"})"}) {
    const auto secrets = read(text);
    EXPECT_EQ(secrets.status().code(), Code::kInvalidArgument) << text;
    EXPECT_THAT(secrets.status().message(), HasSubstr("data.kafka.secrets: k.json"));
  }
  EXPECT_EQ(ReadKafkaSecrets(*files, "none.json").status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace hdps
