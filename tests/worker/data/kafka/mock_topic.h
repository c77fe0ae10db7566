// A topic on librdkafka's brokers of tests, which run in this process.
#pragma once

#include <glog/logging.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include <cstdint>
#include <memory>
#include <string>

namespace hdps {

// The brokers keep 5 MiB, or 100,000 batches, of a partition.
class MockTopic {
 public:
  explicit MockTopic(int partitions, int brokers = 1) {
    rd_kafka_conf_t* const settings = rd_kafka_conf_new();
    host_ = New(settings);
    cluster_ = rd_kafka_mock_cluster_new(host_, brokers);
    CHECK_EQ(rd_kafka_mock_topic_create(cluster_, kName, partitions, 1), 0);
    rd_kafka_conf_t* const producing = rd_kafka_conf_new();
    Set(producing, "bootstrap.servers", this->brokers());
    // Whatever is to be read at once is written at once.
    Set(producing, "linger.ms", "0");
    Set(producing, "queue.buffering.max.messages", "10000000");
    producer_ = New(producing);
  }
  ~MockTopic() {
    rd_kafka_destroy(producer_);
    rd_kafka_mock_cluster_destroy(cluster_);
    rd_kafka_destroy(host_);
  }

  std::string brokers() const { return rd_kafka_mock_cluster_bootstraps(cluster_); }
  std::string entry() const { return "kafka://" + brokers() + "/" + kName; }
  rd_kafka_mock_cluster_t* cluster() { return cluster_; }

  // Writes a message, and returns when the broker has it.
  void Add(int partition, const std::string& text) {
    Write(partition, text);
    Flush();
  }
  // The same in two parts, of which the first waits for nothing.
  void Write(int partition, const std::string& text) {
    CHECK_EQ(rd_kafka_producev(producer_, RD_KAFKA_V_TOPIC(kName), RD_KAFKA_V_PARTITION(partition),
                               RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                               RD_KAFKA_V_VALUE(const_cast<char*>(text.data()), text.size()),
                               RD_KAFKA_V_END),
             0);
  }
  void Flush() { CHECK_EQ(rd_kafka_flush(producer_, 30'000), 0); }

  static constexpr const char* kName = "clicks";

 private:
  static void Set(rd_kafka_conf_t* settings, const char* name, const std::string& value) {
    char why[512];
    CHECK_EQ(rd_kafka_conf_set(settings, name, value.c_str(), why, sizeof why), RD_KAFKA_CONF_OK)
        << why;
  }
  static rd_kafka_t* New(rd_kafka_conf_t* settings) {
    char why[512];
    rd_kafka_t* const made = rd_kafka_new(RD_KAFKA_PRODUCER, settings, why, sizeof why);
    CHECK(made != nullptr) << why;
    return made;
  }

  rd_kafka_t* host_ = nullptr;
  rd_kafka_mock_cluster_t* cluster_ = nullptr;
  rd_kafka_t* producer_ = nullptr;
};

}  // namespace hdps
