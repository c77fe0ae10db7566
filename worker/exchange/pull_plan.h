// Makes the requests of one pull, and puts the rows of the replies in place.
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

// Parameters of a pull besides its keys; see the fields of PullRequest.
struct PullTerms {
  Clock clock = 0;
  PullMode mode = {};  // kTrain.
  Clock pushed = 0;
  uint64_t list = 0;
  DType format = DType::kFp32;
  uint32_t part = 0;
};

inline constexpr Clock kNotRead = -1;

// Parameters of the request that completes prefetched rows.
struct RepairTerms {
  Clock clock = 0;
  Clock pushed = 0;
  uint64_t list = 0;
  // [servers]: min_clock of the reply to kPrefetch; kNotRead if nothing was prefetched from it.
  std::span<const Clock> since;
  // False: prefetched rows are good as they are, and only dense rows are missing.
  bool changes = true;
  DType format = DType::kFp32;
  uint32_t part = 0;
};

// Invariant: asked()[i] describes the i-th request, which the i-th reply answers. The split must
// not change from Pull or Repair to the last Scatter; if it is computed again because shards have
// moved, the pull must be made again.
class PullPlan {
 public:
  struct Asked {
    ServerId server;
    PullMode mode = {};  // kTrain.
  };

  // Makes requests to the servers that hold keys of the split; under kPrefetch only to those that
  // hold keys of sparse tables.
  std::vector<ServerRequest> Pull(const KeySplit& split, const PullTerms& terms);
  // Makes requests that complete prefetched rows: kRefresh with the number of the key list for
  // servers that were prefetched from and may have changes, kTrain with the keys for other servers
  // that hold keys.
  std::vector<ServerRequest> Repair(const KeySplit& split, const RepairTerms& terms);
  const std::vector<Asked>& asked() const { return asked_; }

  // Puts the rows of the i-th reply in their places in rows[t], [keys * row_floats] each; a reply
  // to kRefresh holds only some rows. Returns the reply's own error if it has one, and kCorruption
  // if its tables, sizes or positions do not match the request; nothing is written then. If
  // `in_place` is not empty, fp32 rows of a table that IsContiguous() are not copied but appended
  // to in_place[t] as views into the reply, which the caller must hold. Requires then: not
  // kRefresh, and replies in order.
  Status Scatter(size_t i, const PullReply& reply, std::span<const std::span<float>> rows,
                 std::span<RowSpans<const float>> in_place = {}) const;

 private:
  Status Check(const Asked& asked, const PullReply& reply) const;

  const KeySplit* split_ = nullptr;
  std::vector<Asked> asked_;
};

}  // namespace hdps
