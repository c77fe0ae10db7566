// Messages with one field at an extreme, for every field of every message of the schema.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/buffer.h"
#include "common/protocol/message_kind.h"

namespace flatbuffers {
class Parser;
}  // namespace flatbuffers

namespace hdps::sim {

// Which field of a message has which value. In a list the field is that of its first element.
struct Extreme {
  MessageKind kind = MessageKind::kHeartbeat;
  std::string message;            // "Heartbeat"
  std::vector<std::string> path;  // "activity", "awaited", "for_ms"
  std::string value;              // As JSON; empty: the field is left out.

  std::string Describe() const;  // "Heartbeat.activity.awaited.for_ms = 0"
};

// Reads common/protocol/messages.fbs, so that a field that is added there is among the extremes.
class ExtremeMessages {
 public:
  ExtremeMessages();
  ~ExtremeMessages();

  // 0, 1, the largest, one less, 2^63-2, the least, NaN, infinities, empty and long texts and
  // lists.
  const std::vector<Extreme>& all() const { return all_; }
  // The envelope with that one field changed. An empty envelope is a message of zeros.
  Buffer Apply(const Extreme& extreme, const Buffer& envelope) const;

 private:
  const std::unique_ptr<flatbuffers::Parser> schema_;
  std::vector<Extreme> all_;
};

}  // namespace hdps::sim
