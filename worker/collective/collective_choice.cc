// Chooses the collective backend of a job, the same on every rank.
#include <string>
#include <utility>
#include <vector>

#include "worker/collective/collective.h"
#include "worker/collective/rank_transport.h"

namespace hdps {
namespace {

// Marks a rank without a GPU. A rank offers "HOST GPU", with a GPU name that is the same in all
// processes of the host.
constexpr char kNoGpu[] = "-";

// Returns an empty text if every rank has a GPU to itself, which NCCL requires; else names a rank
// without one.
Result<std::string> FindRankWithoutGpu(const CollectiveOptions& options, RendezvousStore& store) {
  std::vector<std::string> offers;
  for (uint32_t rank = 0; rank < options.size; ++rank) {
    HDPS_ASSIGN_OR_RETURN(offers.emplace_back(),
                          store.Get(options.group + "/offer/" + std::to_string(rank)));
    const std::string& offer = offers.back();
    const size_t space = offer.find(' ');
    const std::string name = "rank " + std::to_string(rank);
    if (space == std::string::npos || offer.size() > 512) {
      return Status(Code::kCorruption,
                    name + " offers '" + offer.substr(0, 64) + "', expected 'HOST GPU'");
    }
    const std::string host = offer.substr(0, space), gpu = offer.substr(space + 1);
    if (gpu == kNoGpu) return name + " on " + host + " has no GPU";
    for (uint32_t other = 0; other < rank; ++other) {
      if (offers[other] == offer) {
        return "ranks " + std::to_string(other) + " and " + std::to_string(rank) + " on " + host +
               " share the GPU " + gpu;
      }
    }
  }
  return std::string();
}

Result<std::shared_ptr<RankTransport>> NewTransport(const std::string& backend,
                                                    const CollectiveOptions& options,
                                                    RendezvousStore& store) {
  if (backend == "gloo") return NewGlooTransport(options, store);
  std::string why_none;
  std::string gpu = NcclGpuName(options.gpu, &why_none);
  if (gpu.empty()) gpu = kNoGpu;
  HDPS_RETURN_IF_ERROR(store.Put(options.group + "/offer/" + std::to_string(options.rank),
                                 options.host + " " + gpu));
  HDPS_ASSIGN_OR_RETURN(const std::string lacking, FindRankWithoutGpu(options, store));
  if (lacking.empty()) {
    return NewNcclTransport(options, static_cast<uint32_t>(options.gpu), store);
  }
  if (backend == "auto") return NewGlooTransport(options, store);
  return Status(Code::kInvalidArgument,
                "parallel.collective: '" + backend + "': " + lacking +
                    (why_none.empty() ? "" : " (" + why_none + ")") +
                    "; NCCL takes one worker a GPU: use 'gloo' or 'auto', or give each worker a "
                    "GPU of its own (--gpu)");
}

}  // namespace

Result<std::unique_ptr<Collective>> NewCollective(const std::string& backend,
                                                  const CollectiveOptions& options,
                                                  RendezvousStore& store) {
  HDPS_ASSIGN_OR_RETURN(std::shared_ptr<RankTransport> transport,
                        NewTransport(backend, options, store));
  return NewCollectiveOver(std::move(transport), options.watch, options.by_library);
}

}  // namespace hdps
