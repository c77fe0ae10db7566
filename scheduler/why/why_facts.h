// What an explanation of a job's waits is made of.
#pragma once

#include <cstdint>
#include <optional>

#include "common/protocol/status_messages.h"

namespace hdps {

// The scheduler's status, and its status `apart_ms` earlier if it was asked twice.
struct WhyFacts {
  StatusReply now;
  std::optional<StatusReply> before;
  int64_t apart_ms = 0;
};

}  // namespace hdps
