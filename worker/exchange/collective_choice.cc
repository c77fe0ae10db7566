// Chooses the collective of a job, the same on every rank.
#include <utility>

#include "worker/exchange/collective.h"

namespace hdps {
namespace {

// What a rank can offer: "HOST GPUS".
struct Offer {
  std::string host;
  uint32_t gpus = 0;
};

Status PutOffer(const CollectiveOptions& options, uint32_t gpus, Board& board) {
  return board.Put(options.group + "/offer/" + std::to_string(options.rank),
                   options.host + " " + std::to_string(gpus));
}

Result<Offer> GetOffer(const CollectiveOptions& options, uint32_t rank, Board& board) {
  HDPS_ASSIGN_OR_RETURN(const std::string text,
                        board.Get(options.group + "/offer/" + std::to_string(rank)));
  const size_t space = text.rfind(' ');
  if (space == std::string::npos || text.size() - space > 8 ||
      text.find_first_not_of("0123456789", space + 1) != std::string::npos) {
    return Status(Code::kCorruption,
                  "rank " + std::to_string(rank) + " offers '" + text + "', expected 'HOST GPUS'");
  }
  return Offer{text.substr(0, space),
               static_cast<uint32_t>(std::stoul("0" + text.substr(space + 1)))};
}

// Position of this rank among those of its host, and the first rank that finds no GPU left.
struct Placement {
  uint32_t gpu = 0;
  std::string lacking;  // Empty when every rank has a GPU.
};

Result<Placement> PlaceRanks(const CollectiveOptions& options, Board& board) {
  std::vector<Offer> offers;
  for (uint32_t rank = 0; rank < options.size; ++rank) {
    HDPS_ASSIGN_OR_RETURN(Offer offer, GetOffer(options, rank, board));
    offers.push_back(std::move(offer));
  }
  Placement placement;
  for (uint32_t rank = 0; rank < options.size; ++rank) {
    uint32_t before = 0;  // Ranks before this one on its host.
    for (uint32_t r = 0; r < rank; ++r) before += offers[r].host == offers[rank].host ? 1 : 0;
    if (before >= offers[rank].gpus && placement.lacking.empty()) {
      placement.lacking = "rank " + std::to_string(rank) + " on " + offers[rank].host +
                          " finds no GPU of its own among " + std::to_string(offers[rank].gpus);
    }
    if (rank == options.rank) placement.gpu = before;
  }
  return placement;
}

}  // namespace

Result<std::unique_ptr<Collective>> NewCollective(const std::string& backend,
                                                  const CollectiveOptions& options, Board& board) {
  if (backend == "gloo") return NewGlooCollective(options, board);
  std::string why_none;
  const uint32_t gpus = CountNcclGpus(&why_none);
  HDPS_RETURN_IF_ERROR(PutOffer(options, gpus, board));
  HDPS_ASSIGN_OR_RETURN(const Placement placement, PlaceRanks(options, board));
  if (placement.lacking.empty()) return NewNcclCollective(options, placement.gpu, board);
  if (backend == "auto") return NewGlooCollective(options, board);
  return Status(Code::kInvalidArgument,
                "parallel.collective: '" + backend + "': " + placement.lacking +
                    (why_none.empty() ? "" : " (" + why_none + ")") +
                    "; use 'gloo' or 'auto', or start at most one worker a GPU");
}

}  // namespace hdps
