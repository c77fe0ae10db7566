// Groups whose ranks are threads of one process.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "worker/exchange/collective.h"

namespace hdps {

std::vector<std::unique_ptr<Collective>> NewLocalCollectives(uint32_t size);

// A store in memory, without a limit to its waits.
std::unique_ptr<RendezvousStore> NewLocalStore();

// A thread a rank; returns when all have ended.
void OnAllRanks(uint32_t size, const std::function<void(uint32_t rank)>& body);

}  // namespace hdps
