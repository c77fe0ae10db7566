// Chooses the collective of a job, the same on every rank.
#include <utility>

#include "worker/collective/collective.h"
#include "worker/collective/rank_transport.h"

namespace hdps {
namespace {

// What a rank can offer: "HOST GPUS".
struct Offer {
  std::string host;
  uint32_t gpus = 0;
};

Status PutOffer(const CollectiveOptions& options, uint32_t gpus, RendezvousStore& store) {
  return store.Put(options.group + "/offer/" + std::to_string(options.rank),
                   options.host + " " + std::to_string(gpus));
}

Result<Offer> GetOffer(const CollectiveOptions& options, uint32_t rank, RendezvousStore& store) {
  HDPS_ASSIGN_OR_RETURN(const std::string text,
                        store.Get(options.group + "/offer/" + std::to_string(rank)));
  const size_t space = text.rfind(' ');
  if (space == std::string::npos || text.size() - space > 8 ||
      text.find_first_not_of("0123456789", space + 1) != std::string::npos) {
    return Status(Code::kCorruption,
                  "rank " + std::to_string(rank) + " offers '" + text + "', expected 'HOST GPUS'");
  }
  return Offer{text.substr(0, space),
               static_cast<uint32_t>(std::stoul("0" + text.substr(space + 1)))};
}

// Which GPU this rank gets, and the first rank that finds none left on its host.
struct GpuShares {
  uint32_t gpu = 0;     // The rank's position among those of its host.
  std::string lacking;  // Empty when every rank has a GPU.
};

Result<GpuShares> ShareGpus(const CollectiveOptions& options, RendezvousStore& store) {
  std::vector<Offer> offers;
  for (uint32_t rank = 0; rank < options.size; ++rank) {
    HDPS_ASSIGN_OR_RETURN(Offer offer, GetOffer(options, rank, store));
    offers.push_back(std::move(offer));
  }
  GpuShares shares;
  for (uint32_t rank = 0; rank < options.size; ++rank) {
    uint32_t before = 0;  // Ranks before this one on its host.
    for (uint32_t r = 0; r < rank; ++r) before += offers[r].host == offers[rank].host ? 1 : 0;
    if (before >= offers[rank].gpus && shares.lacking.empty()) {
      shares.lacking = "rank " + std::to_string(rank) + " on " + offers[rank].host +
                       " finds no GPU of its own among " + std::to_string(offers[rank].gpus);
    }
    if (rank == options.rank) shares.gpu = before;
  }
  return shares;
}

Result<std::shared_ptr<RankTransport>> NewTransport(const std::string& backend,
                                                    const CollectiveOptions& options,
                                                    RendezvousStore& store) {
  if (backend == "gloo") return NewGlooTransport(options, store);
  std::string why_none;
  const uint32_t gpus = CountNcclGpus(&why_none);
  HDPS_RETURN_IF_ERROR(PutOffer(options, gpus, store));
  HDPS_ASSIGN_OR_RETURN(const GpuShares shares, ShareGpus(options, store));
  if (shares.lacking.empty()) return NewNcclTransport(options, shares.gpu, store);
  if (backend == "auto") return NewGlooTransport(options, store);
  return Status(Code::kInvalidArgument,
                "parallel.collective: '" + backend + "': " + shares.lacking +
                    (why_none.empty() ? "" : " (" + why_none + ")") +
                    "; use 'gloo' or 'auto', or start at most one worker a GPU");
}

}  // namespace

Result<std::unique_ptr<Collective>> NewCollective(const std::string& backend,
                                                  const CollectiveOptions& options,
                                                  RendezvousStore& store) {
  HDPS_ASSIGN_OR_RETURN(std::shared_ptr<RankTransport> transport,
                        NewTransport(backend, options, store));
  return NewCollectiveOver(std::move(transport));
}

}  // namespace hdps
