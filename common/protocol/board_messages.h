// Messages to the key-value store of the scheduler, through which the ranks of a collective find
// each other.
#pragma once

#include <string>

#include "common/protocol/message_kind.h"

namespace hdps {

// Stores a value on the scheduler; the ranks of a collective find each other through these.
struct KvPut {
  static constexpr MessageKind kKind = MessageKind::kKvPut;
  std::string key;
  std::string value;
};
struct KvGet {
  static constexpr MessageKind kKind = MessageKind::kKvGet;
  std::string key;
};
struct KvValue {  // Answers both requests.
  static constexpr MessageKind kKind = MessageKind::kKvValue;
  std::string key;
  bool found = false;
  std::string value;
};

}  // namespace hdps
