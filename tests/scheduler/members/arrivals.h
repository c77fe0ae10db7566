// Makes processes that join a test cluster.
#pragma once

#include <string>

#include "common/protocol/membership_messages.h"
#include "scheduler/members/rendezvous.h"

namespace hdps {

inline constexpr uint64_t kJobOfTests = 77;

inline RendezvousOptions ClusterOf(uint32_t servers, uint32_t workers) {
  return {.num_servers = servers,
          .num_workers = workers,
          .num_shards = 8,
          .job_digest = kJobOfTests,
          .dead_after_ms = 1000};
}

inline JoinRequest RequestOf(Role role, const std::string& host, int32_t rank = -1) {
  JoinRequest request;
  request.role = role;
  request.rank = rank;
  request.job_digest = kJobOfTests;
  request.host = host;
  if (role == Role::kServer) request.address = "tcp://" + host + ":1";
  return request;
}

// Fills all places with servers 10, 11, ... on hosts s0, s1, ..., and workers 20, 21, ... on w0,
// w1, ...
inline void FillPlaces(Rendezvous& rendezvous, TimeMs now) {
  for (const Role role : {Role::kServer, Role::kWorker}) {
    const uint64_t first = role == Role::kServer ? 10 : 20;
    for (uint32_t i = 0; i < rendezvous.Places(role); ++i) {
      const std::string host = (role == Role::kServer ? "s" : "w") + std::to_string(i);
      rendezvous.Admit({first + i}, RequestOf(role, host), now);
    }
  }
}

}  // namespace hdps
