// Runs brokers with one topic for the tests, and writes into it what it reads.
//
// kafka_brokers PARTITIONS [BROKERS] prints the entry of the topic, then obeys lines:
//   PARTITION TEXT      writes a message; "PARTITION =6162" writes one of any bytes, in hex
//   flush               prints "written" when brokers have all
//   down, up            stops the first broker, and starts it again
//   errors              lets the next requests for messages fail in ways that pass
//   gone                answers from now on that there is no such topic
// It ends with its input.
#include <glog/logging.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

#include "tests/worker/data/kafka/mock_topic.h"

namespace {

std::string BytesOf(const std::string& text) {
  if (!text.starts_with('=')) return text;
  std::string bytes;
  for (size_t at = 1; at + 1 < text.size(); at += 2) {
    bytes += static_cast<char>(std::stoi(text.substr(at, 2), nullptr, 16));
  }
  return bytes;
}

void Obey(const std::string& line, hdps::MockTopic* topic) {
  constexpr int16_t kFetch = 1;
  if (line == "down" || line == "up") {
    const auto set = line == "down" ? rd_kafka_mock_broker_set_down : rd_kafka_mock_broker_set_up;
    CHECK_EQ(set(topic->cluster(), 1), 0);
  } else if (line == "flush") {
    topic->Flush();
    std::cout << "written" << std::endl;
  } else if (line == "errors") {
    rd_kafka_mock_push_request_errors(
        topic->cluster(), kFetch, 4, RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
        RD_KAFKA_RESP_ERR__TRANSPORT, RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE,
        RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT);
  } else if (line == "gone") {
    rd_kafka_mock_topic_set_error(topic->cluster(), hdps::MockTopic::kName,
                                  RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
  } else {
    const size_t blank = line.find(' ');
    CHECK_NE(blank, std::string::npos) << line;
    topic->Write(std::atoi(line.c_str()), BytesOf(line.substr(blank + 1)));
  }
}

}  // namespace

int main(int argc, char** argv) {
  CHECK(argc == 2 || argc == 3) << "expected the number of partitions, and maybe that of brokers";
  hdps::MockTopic topic(std::atoi(argv[1]), argc == 3 ? std::atoi(argv[2]) : 1);
  std::cout << topic.entry() << std::endl;
  for (std::string line; std::getline(std::cin, line);) Obey(line, &topic);
  return 0;
}
