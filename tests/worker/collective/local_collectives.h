// Groups whose ranks are threads of one process.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "worker/collective/collective.h"
#include "worker/collective/rank_transport.h"

namespace hdps {

inline std::vector<std::unique_ptr<Collective>> NewLocalCollectives(uint32_t size) {
  return NewThreadCollectives(size);
}

// A store in memory, without a limit to its waits.
std::unique_ptr<RendezvousStore> NewLocalStore();

}  // namespace hdps
