// Measures sums over ranks by Gloo on loopback: in the order of the ranks, and by Gloo itself.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/bench.h"
#include "worker/collective/collective.h"
#include "worker/collective/rank_transport.h"

namespace hdps {
namespace {

constexpr char kBench[] = "reduction";
constexpr uint32_t kRanks[] = {2, 4, 8};
constexpr size_t kSizes[] = {1 << 10, 16 << 10, 256 << 10, 4 << 20, 64 << 20};

std::string NameOf(uint32_t ranks, size_t bytes) {
  const bool mib = bytes >= 1 << 20;
  return std::to_string(ranks) + "_ranks_" + std::to_string(bytes >> (mib ? 20 : 10)) +
         (mib ? "MiB" : "KiB");
}

// Ranks as threads of this process, each with its values.
class Group {
 public:
  Status Open(const std::string& name, uint32_t size, bool by_library) {
    ranks_.resize(size);
    return OnRanks([&](uint32_t r) {
      const CollectiveOptions options = {
          .rank = r, .size = size, .group = name, .by_library = by_library};
      HDPS_ASSIGN_OR_RETURN(ranks_[r].group, NewCollective("gloo", options, *store_));
      return Status();
    });
  }
  // Sums `count` floats of each rank, `times` times; returns the milliseconds of one sum.
  Result<double> Sum(size_t count, int times) {
    for (Rank& rank : ranks_) rank.values.assign(count, 0.0f);
    Status status;
    const double seconds = SecondsOf([&] {
      status = OnRanks([&](uint32_t r) {
        for (int i = 0; i < times; ++i) {
          HDPS_RETURN_IF_ERROR(ranks_[r].group->AllReduceSum(ranks_[r].values));
        }
        return Status();
      });
    });
    HDPS_RETURN_IF_ERROR(status);
    return 1e3 * seconds / times;
  }

 private:
  struct Rank {
    std::unique_ptr<Collective> group;
    std::vector<float> values;
    Status status;
  };
  Status OnRanks(const std::function<Status(uint32_t)>& body) {
    OnAllRanks(static_cast<uint32_t>(ranks_.size()),
               [&](uint32_t r) { ranks_[r].status = body(r); });
    for (const Rank& rank : ranks_) HDPS_RETURN_IF_ERROR(rank.status);
    return Status();
  }

  const std::unique_ptr<RendezvousStore> store_ = NewMemoryStore();
  std::vector<Rank> ranks_;
};

}  // namespace

Status RunReductionBench(const BenchSetting& setting, FileSystem&, BenchReport& report) {
  for (const uint32_t ranks : kRanks) {
    Group ordered, library;
    bool open = false;
    for (const size_t bytes : kSizes) {
      const std::string name = NameOf(ranks, bytes);
      if (!setting.Wants(name)) continue;
      PrintProgress(kBench, name);
      if (!open) {
        HDPS_RETURN_IF_ERROR(ordered.Open("ordered", ranks, false));
        HDPS_RETURN_IF_ERROR(library.Open("library", ranks, true));
        open = true;
      }
      // So many that a sample takes tenths of a second.
      const size_t moved = setting.quick ? 2 << 20 : 64 << 20;
      const int times = static_cast<int>(std::clamp<size_t>(moved / bytes / ranks, 1, 200));
      Status status;
      const auto run = [&](Group& group) {
        const Result<double> ms = group.Sum(bytes / sizeof(float), times);
        if (!ms.ok()) status = ms.status();
        return ms.ok() ? *ms : 0.0;
      };
      run(ordered);
      run(library);
      const auto samples = InterleavedSamples(
          setting.repeats, {[&] { return run(ordered); }, [&] { return run(library); }});
      HDPS_RETURN_IF_ERROR(status);
      report.AddBeside(kBench, name, "in order", "ms", samples[0], "Gloo's own", samples[1]);
    }
  }
  return Status();
}

}  // namespace hdps
