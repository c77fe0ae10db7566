// Finds the elected scheduler of a job in etcd.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/election/etcd.h"
#include "common/protocol/locate/scheduler_locator.h"

namespace hdps {

// Asks etcd once for the address of the leader. Errors: kUnavailable says why none is known, and
// kInvalidArgument as Etcd::Do().
Result<std::string> LeaderIn(Etcd& etcd);

// Returns a locator that asks etcd every `every_ms` on a thread of its own. The address of the last
// answer that named one stays known. `place` is how people call it.
std::unique_ptr<SchedulerLocator> NewEtcdLocator(std::unique_ptr<Etcd> etcd, std::string place,
                                                 int64_t every_ms);

}  // namespace hdps
