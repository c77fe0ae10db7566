// Tells from librdkafka's statistics whether brokers answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace hdps {

// Returns true if the leader of each of these partitions of the topic is connected. Returns false,
// too, for a text that says nothing of them: the topic is not known yet, or a broker's name breaks
// the text.
bool LeadersAreConnected(std::string_view statistics, const std::string& topic,
                         std::span<const uint32_t> partitions);

// Returns how many partitions the topic has by the statistics; 0 if they do not say.
size_t NumPartitionsIn(std::string_view statistics, const std::string& topic);

}  // namespace hdps
