// Makes messages with one field at an extreme, for every field of every message in the schema.
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

// A field of a message and its extreme value. In a list it is the field of the first element.
struct Extreme {
  MessageKind kind = MessageKind::kHeartbeat;
  std::string message;            // "Heartbeat"
  std::vector<std::string> path;  // "activity", "awaited", "for_ms"
  std::string value;              // JSON; empty: the field is left out.

  std::string Describe() const;  // "Heartbeat.activity.awaited.for_ms = 0"
};

// Reads common/protocol/messages.fbs, so that new fields are covered automatically.
class ExtremeMessages {
 public:
  ExtremeMessages();
  ~ExtremeMessages();

  // Returns all extremes: 0, 1, the largest, one less, 2^63-2, the least, NaN, infinities, empty
  // and long texts and lists.
  const std::vector<Extreme>& all() const { return all_; }
  // Returns the envelope with this field changed. An empty envelope stands for a message of zeros.
  Buffer Apply(const Extreme& extreme, const Buffer& envelope) const;

 private:
  const std::unique_ptr<flatbuffers::Parser> schema_;
  std::vector<Extreme> all_;
};

}  // namespace hdps::sim
