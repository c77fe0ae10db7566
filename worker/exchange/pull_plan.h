// The requests of one pull, and where the rows of their answers go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/base/dtype.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "kernels/row_spans.h"
#include "worker/exchange/key_split.h"
#include "worker/exchange/server_request.h"

namespace hdps {

enum class PullMode : uint8_t;
struct PullReply;

// What a pull asks for beside its keys; as the fields of PullRequest.
struct PullTerms {
  Clock clock = 0;
  PullMode mode = {};  // kTrain.
  Clock pushed = 0;
  uint64_t list = 0;
  DType format = DType::kFp32;
};

inline constexpr Clock kNotRead = -1;

// What is left to ask for when rows were read ahead.
struct RepairTerms {
  Clock clock = 0;
  Clock pushed = 0;
  uint64_t list = 0;
  // [servers]: min_clock of the reply to kPrefetch; kNotRead where none was asked for.
  std::span<const Clock> since;
  bool changes = true;  // False: rows that were read ahead stand, only the dense ones are missing.
  DType format = DType::kFp32;
};

// Invariant: asked()[i] is what the i-th request asks, and so the i-th reply answers it. From Pull
// or Repair to the last Scatter the split stays as it is; after it was computed anew, for other
// owners of the shards, the pull is asked again.
class PullPlan {
 public:
  struct Asked {
    ServerId server;
    PullMode mode = {};  // kTrain.
  };

  // Requests to the servers that hold keys of the split; under kPrefetch, keys of other tables than
  // the dense one.
  std::vector<ServerRequest> Pull(const KeySplit& split, const PullTerms& terms);
  // kRefresh, naming the list, to the servers that were read ahead and have something to add;
  // kTrain with the keys to the others that hold keys.
  std::vector<ServerRequest> Repair(const KeySplit& split, const RepairTerms& terms);
  const std::vector<Asked>& asked() const { return asked_; }

  // The i-th reply's rows -> their places in rows[t], [keys * row_floats] each; under kRefresh only
  // those that are there. Gives the reply's own error if it has one, and kCorruption when its
  // tables, sizes or positions are not those that were asked for; then nothing is written.
  // `in_place` not empty: rows of a table InPieces() in 32 bits are not copied, but are added to
  // in_place[t], and stay there while the reply is held. Requires then: not kRefresh, and replies
  // in their order.
  Status Scatter(size_t i, const PullReply& reply, std::span<const std::span<float>> rows,
                 std::span<RowSpans<const float>> in_place = {}) const;

 private:
  Status Check(const Asked& asked, const PullReply& reply) const;

  const KeySplit* split_ = nullptr;
  std::vector<Asked> asked_;
};

}  // namespace hdps
