// Runs brokers with one topic for the tests, and writes into it what it reads.
//
// kafka_brokers PARTITIONS prints the entry of the topic, then obeys lines: "PARTITION TEXT" writes
// a message, "flush" prints "written" when brokers have all, "down" and "up" are about the brokers.
// It ends with its input.
#include <glog/logging.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

#include "tests/worker/data/kafka/mock_topic.h"

int main(int argc, char** argv) {
  CHECK_EQ(argc, 2) << "expected the number of partitions";
  hdps::MockTopic topic(std::atoi(argv[1]));
  std::cout << topic.entry() << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    if (line == "down" || line == "up") {
      const auto set = line == "down" ? rd_kafka_mock_broker_set_down : rd_kafka_mock_broker_set_up;
      CHECK_EQ(set(topic.cluster(), 1), 0);
    } else if (line == "flush") {
      topic.Flush();
      std::cout << "written" << std::endl;
    } else {
      const size_t blank = line.find(' ');
      CHECK_NE(blank, std::string::npos) << line;
      topic.Write(std::atoi(line.c_str()), line.substr(blank + 1));
    }
  }
  return 0;
}
