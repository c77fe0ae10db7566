// Tests which brokers count as connected.
#include "worker/data/kafka/broker_states.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hdps {
namespace {

std::string Statistics(const std::string& second) {
  return R"({"brokers": {"b:1/bootstrap": {"nodeid": -1, "state": "DOWN"},
                         "b:1/1": {"nodeid": 1, "state": "UP"},
                         "b:2/2": {"nodeid": 2, "state": ")" +
         second + R"("}},
             "topics": {"clicks": {"partitions": {"0": {"leader": 1}, "1": {"leader": 2},
                                                  "-1": {"leader": -1}}}}})";
}

TEST(BrokerStatesTest, TheLeadersOfThePartitionsCount) {
  const std::vector<uint32_t> both = {0, 1}, first = {0}, more = {0, 2};
  EXPECT_TRUE(LeadersAreConnected(Statistics("UP"), "clicks", both));
  EXPECT_FALSE(LeadersAreConnected(Statistics("TRY_CONNECT"), "clicks", both));
  EXPECT_TRUE(LeadersAreConnected(Statistics("TRY_CONNECT"), "clicks", first));
  EXPECT_FALSE(LeadersAreConnected(Statistics("UP"), "clicks", more));
  EXPECT_FALSE(LeadersAreConnected(Statistics("UP"), "views", both));
}

TEST(BrokerStatesTest, PartitionsAreCounted) {
  EXPECT_EQ(NumPartitionsIn(Statistics("UP"), "clicks"), 2u);
  EXPECT_EQ(NumPartitionsIn(Statistics("UP"), "views"), 0u);
  EXPECT_EQ(NumPartitionsIn("{", "clicks"), 0u);
}

TEST(BrokerStatesTest, TextsThatSayNothingAreNo) {
  const std::vector<uint32_t> first = {0};
  const std::string whole = Statistics("UP");
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(LeadersAreConnected(whole.substr(0, size), "clicks", first)) << size;
  }
  EXPECT_FALSE(LeadersAreConnected(R"({"brokers": 5, "topics": {}})", "clicks", first));
  EXPECT_FALSE(LeadersAreConnected(Statistics(R"(UP", "nodeid": "x)"), "clicks", first));
}

}  // namespace
}  // namespace hdps
