// The board on the scheduler through which the ranks of a collective find each other.
#pragma once

#include <string>

#include "common/protocol/message_kind.h"

namespace hdps {

// A small board on the scheduler on which the ranks of a collective find each other.
struct KvPut {
  static constexpr MessageKind kKind = MessageKind::kKvPut;
  std::string key;
  std::string value;
};
struct KvGet {
  static constexpr MessageKind kKind = MessageKind::kKvGet;
  std::string key;
};
struct KvValue {  // Answers both.
  static constexpr MessageKind kKind = MessageKind::kKvValue;
  std::string key;
  bool found = false;
  std::string value;
};

}  // namespace hdps
