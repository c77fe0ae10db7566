// Looks up the leaders of partitions among the brokers that are up.
#include "worker/data/kafka/broker_states.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

namespace hdps {

bool LeadersAreConnected(std::string_view statistics, const std::string& topic,
                         std::span<const uint32_t> partitions) {
  try {
    const auto json = nlohmann::json::parse(statistics);
    std::set<int64_t> connected;
    for (const auto& broker : json.at("brokers")) {
      if (broker.at("state") == "UP") connected.insert(broker.at("nodeid").get<int64_t>());
    }
    const auto& known = json.at("topics").at(topic).at("partitions");
    return std::ranges::all_of(partitions, [&](uint32_t partition) {
      const auto& leader = known.at(std::to_string(partition)).at("leader");
      return connected.contains(leader.template get<int64_t>());
    });
  } catch (const nlohmann::json::exception&) {
    return false;
  }
}

size_t NumPartitionsIn(std::string_view statistics, const std::string& topic) {
  try {
    const auto json = nlohmann::json::parse(statistics);
    const auto& known = json.at("topics").at(topic).at("partitions");
    return known.size() - known.count("-1");  // That is for messages of no partition.
  } catch (const nlohmann::json::exception&) {
    return 0;
  }
}

}  // namespace hdps
