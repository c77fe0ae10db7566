// Emulates a group of two with a distant second rank that contributes the same values: every call
// takes a round trip, and no other work is done meanwhile. For tests of overlap.
#pragma once

#include <cstdint>
#include <memory>

#include "common/platform/threads/pause.h"
#include "worker/collective/collective.h"

namespace hdps {

class FarGroup : public Collective {
 public:
  explicit FarGroup(int64_t round_trip_ms) : round_trip_ms_(round_trip_ms) {}

  uint32_t rank() const override { return 0; }
  uint32_t size() const override { return 2; }
  const char* name() const override { return "far"; }
  Status AllReduce(std::span<const ReducedValues>) override { return Wait(); }
  using Collective::ReduceScatter;
  Status ReduceScatter(const ReducedValues&, std::span<const size_t>, void*) override {
    return Wait();
  }
  Status Broadcast(uint32_t, std::span<std::byte>, MemorySpace) override { return Wait(); }
  Status AllGather(std::span<const std::byte>, std::span<const size_t>, std::span<std::byte>,
                   MemorySpace) override {
    return Wait();
  }
  Status Exchange(std::span<const RankBytes>, std::span<const RankBytes>) override {
    return Wait();
  }
  Status Barrier() override { return Wait(); }
  Result<std::unique_ptr<Collective>> Split(uint32_t) override {
    return Status(Code::kInvalidArgument, "a far group is not split");
  }
  void Abort() override { pause_.End(); }
  CollectiveCounts counts() const override { return {}; }

 private:
  Status Wait() {
    if (pause_.For(round_trip_ms_)) return {};
    return Status(Code::kCancelled, "the group was ended");
  }

  const int64_t round_trip_ms_;
  Pause pause_;
};

}  // namespace hdps
