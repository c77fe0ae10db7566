// Tests the consumer against librdkafka's own brokers.
#include "worker/data/kafka/rdkafka_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "common/job/spec/data_spec.h"
#include "common/platform/file_system.h"
#include "tests/worker/data/kafka/mock_topic.h"

namespace hdps {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RdkafkaSourceTest : public testing::Test {
 protected:
  RdkafkaSourceTest() : files_(NewMemoryFileSystem()), topic_(3) {}

  std::unique_ptr<MessageSource> Open(const std::string& entry) {
    Result<std::unique_ptr<MessageSource>> source = NewRdkafkaSource(
        entry, kafka_, *files_, [this](const std::string& trouble) { told_.push_back(trouble); });
    EXPECT_TRUE(source.ok()) << source.status().message();
    return source.ok() ? *std::move(source) : nullptr;
  }
  // Takes `count` messages of the partition, for which it waits.
  static std::vector<std::string> Take(MessageSource& source, uint32_t partition, size_t count) {
    std::vector<std::string> texts;
    while (texts.size() < count) {
      const Result<std::optional<TopicMessage>> taken = source.Take(partition);
      EXPECT_TRUE(taken.ok()) << taken.status().message();
      if (!taken.ok()) break;
      if (taken->has_value()) {
        texts.push_back(std::to_string((*taken)->offset) + " " + std::string((*taken)->text));
      } else if (!source.Wait(60'000)) {
        break;
      }
    }
    return texts;
  }

  std::unique_ptr<FileSystem> files_;
  MockTopic topic_;
  KafkaSpec kafka_;
  std::vector<std::string> told_;  // What held a source up, as it told.
};

TEST_F(RdkafkaSourceTest, PartitionsAreReadFromTheirOffsets) {
  for (const char* text : {"a0", "a1", "a2"}) topic_.Add(0, text);
  for (const char* text : {"b0", "b1"}) topic_.Add(2, text);
  const auto source = Open(topic_.entry());
  const Result<uint32_t> count = source->CountPartitions();
  ASSERT_TRUE(count.ok()) << count.status().message();
  EXPECT_EQ(*count, 3u);
  const PartitionOffset from[] = {{0, 1}, {2, 0}};
  ASSERT_TRUE(source->Begin(from).ok());
  EXPECT_THAT(Take(*source, 2, 2), ElementsAre("0 b0", "1 b1"));
  EXPECT_THAT(Take(*source, 0, 2), ElementsAre("1 a1", "2 a2"));
  EXPECT_EQ(source->Behind({0, 1}), 2u);
  // One that comes later ends the wait.
  std::jthread later([this] { topic_.Add(0, "a3"); });
  EXPECT_THAT(Take(*source, 0, 1), ElementsAre("3 a3"));
}

TEST_F(RdkafkaSourceTest, WhereAJobBegins) {
  for (const char* text : {"a0", "a1", "a2"}) topic_.Add(0, text);
  const auto start_of = [this](const std::string& start, uint32_t partition) {
    kafka_.start = start;
    const Result<int64_t> offset = Open(topic_.entry())->StartOf(partition);
    EXPECT_TRUE(offset.ok()) << offset.status().message();
    return offset.ok() ? *offset : -1;
  };
  EXPECT_EQ(start_of("earliest", 0), 0);
  EXPECT_EQ(start_of("latest", 0), 3);
  EXPECT_EQ(start_of("latest", 1), 0);
  kafka_.start_offsets = {{0, 2}};
  EXPECT_EQ(start_of("earliest", 0), 2);
  const Result<int64_t> missing = Open(topic_.entry())->StartOf(1);
  EXPECT_EQ(missing.status().code(), Code::kInvalidArgument);
}

TEST_F(RdkafkaSourceTest, ABrokerThatIsAwayIsWaitedFor) {
  topic_.Add(0, "a0");
  const auto source = Open(topic_.entry());
  const PartitionOffset from[] = {{0, 0}};
  ASSERT_TRUE(source->Begin(from).ok());
  EXPECT_THAT(Take(*source, 0, 1), ElementsAre("0 a0"));
  EXPECT_THAT(told_, ElementsAre());
  ASSERT_EQ(rd_kafka_mock_broker_set_down(topic_.cluster(), 1), 0);
  while (told_.empty()) {
    ASSERT_TRUE(source->Wait(-1));
    ASSERT_FALSE(source->Take(0)->has_value());
  }
  EXPECT_THAT(told_,
              ElementsAre(AllOf(HasSubstr("a broker is away"), HasSubstr(topic_.brokers()))));
  ASSERT_EQ(rd_kafka_mock_broker_set_up(topic_.cluster(), 1), 0);
  // It is back, also without a message.
  while (told_.size() < 2) {
    ASSERT_TRUE(source->Wait(-1));
    ASSERT_FALSE(source->Take(0)->has_value());
  }
  EXPECT_EQ(told_.back(), "");
  topic_.Add(0, "a1");
  EXPECT_THAT(Take(*source, 0, 1), ElementsAre("1 a1"));
}

TEST_F(RdkafkaSourceTest, WhatTheBrokerHasDeletedIsAGapOfOffsets) {
  const std::string large(900'000, 'x');  // The broker keeps 5 MiB.
  for (int i = 0; i < 12; ++i) topic_.Add(1, large);
  const auto source = Open(topic_.entry());
  const Result<int64_t> first = source->FirstOf(1);
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_GT(*first, 0);
  const PartitionOffset from[] = {{1, 0}};
  ASSERT_TRUE(source->Begin(from).ok());
  EXPECT_THAT(Take(*source, 1, 1), ElementsAre(std::to_string(*first) + " " + large));
}

TEST_F(RdkafkaSourceTest, ErrorsOfBrokersThatPassAreSurvived) {
  topic_.Add(1, "b0");
  constexpr int16_t kFetch = 1, kMetadata = 3;
  rd_kafka_mock_push_request_errors(topic_.cluster(), kMetadata, 1,
                                    RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE);
  rd_kafka_mock_push_request_errors(topic_.cluster(), kFetch, 2,
                                    RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
                                    RD_KAFKA_RESP_ERR__TRANSPORT);
  const auto source = Open(topic_.entry());
  const Result<uint32_t> count = source->CountPartitions();
  ASSERT_TRUE(count.ok()) << count.status().message();
  const PartitionOffset from[] = {{1, 0}};
  ASSERT_TRUE(source->Begin(from).ok());
  EXPECT_THAT(Take(*source, 1, 1), ElementsAre("0 b0"));
}

TEST_F(RdkafkaSourceTest, ATopicThatIsNotThereIsRefused) {
  rd_kafka_mock_topic_set_error(topic_.cluster(), "no_clicks",
                                RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
  const auto source = Open("kafka://" + topic_.brokers() + "/no_clicks");
  const Result<uint32_t> count = source->CountPartitions();
  EXPECT_EQ(count.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(count.status().message(), HasSubstr("no_clicks: the brokers have no such topic"));
}

TEST_F(RdkafkaSourceTest, AStopEndsTheWaitForBrokersThatNeverCome) {
  ASSERT_EQ(rd_kafka_mock_broker_set_down(topic_.cluster(), 1), 0);
  const auto source = Open(topic_.entry());
  std::jthread stop([&] { source->Stop(); });
  EXPECT_EQ(source->CountPartitions().status().code(), Code::kCancelled);
  EXPECT_FALSE(source->Wait(-1));
}

TEST_F(RdkafkaSourceTest, SettingsThatLibrdkafkaRefusesAreNamed) {
  kafka_.settings = {{"fetch.wait.max.millis", "5"}};
  const auto source = NewRdkafkaSource(topic_.entry(), kafka_, *files_);
  EXPECT_EQ(source.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(source.status().message(), HasSubstr("data.kafka.settings.fetch.wait.max.millis"));
}

}  // namespace
}  // namespace hdps
