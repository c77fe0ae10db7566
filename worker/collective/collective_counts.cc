// Gives the sizes of values, and the names and counts of calls.
#include <glog/logging.h>

#include "worker/collective/collective.h"

namespace hdps {

size_t ElementBytes(Reduction reduction) {
  switch (reduction) {
    case Reduction::kSumFp16:
    case Reduction::kSumBf16:
      return 2;
    case Reduction::kSumFloat:
    case Reduction::kSumUint32:
      return 4;
    case Reduction::kSumUint64:
    case Reduction::kOrUint64:
      return 8;
  }
  LOG(FATAL) << "no reduction " << static_cast<int>(reduction);
}

const char* CollectiveName(CollectiveKind kind) {
  constexpr const char* kNames[kCollectiveKinds] = {"allreduce", "reduce_scatter", "allgather",
                                                    "broadcast", "barrier",        "exchange"};
  return kNames[static_cast<size_t>(kind)];
}

void CollectiveCounts::Add(const CollectiveCounts& other) {
  for (size_t k = 0; k < kCollectiveKinds; ++k) {
    kinds[k].calls += other.kinds[k].calls;
    kinds[k].bytes += other.kinds[k].bytes;
  }
}

std::string CollectiveCounts::Describe() const {
  std::string text;
  for (size_t k = 0; k < kCollectiveKinds; ++k) {
    if (kinds[k].calls == 0) continue;
    text += (text.empty() ? "" : "; ") +
            std::string(CollectiveName(static_cast<CollectiveKind>(k))) + " " +
            std::to_string(kinds[k].calls) + " calls, " + std::to_string(kinds[k].bytes) + " bytes";
  }
  return text.empty() ? "none" : text;
}

}  // namespace hdps
