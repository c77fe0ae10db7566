// Makes the requests of one push. Gradients are written where they are sent from if possible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/base/buffer.h"
#include "common/base/dtype.h"
#include "common/base/ids.h"
#include "common/base/square_sum.h"
#include "common/protocol/manifest_parts.h"
#include "common/protocol/tallies.h"
#include "kernels/row_spans.h"
#include "worker/exchange/key_split.h"
#include "worker/exchange/server_request.h"

namespace hdps {

// Parameters of a push besides its keys and gradients; see the fields of PushRequest. If `list` is
// not 0, the servers know the keys under this number.
struct PushTerms {
  Sequence sequence;
  Clock clock = 0;
  uint64_t num_examples = 0;
  uint64_t list = 0;
  DType format = DType::kFp32;
  double rate = 1;
  uint32_t epoch = 0;
  uint32_t part = 0;
  Clock steps_before = 0;
  double loss_scale = 1;  // TrainSpec::loss_scale, for gradients in fp16.
  RoundCounts counts = {};
  std::vector<PartitionSpan> messages = {};
};

// Makes the push of one step.
//
// Invariant: the split does not change from construction to Requests().
class PushPlan {
 public:
  // `make`, if set, allocates the sections. Unused sections are released.
  explicit PushPlan(const KeySplit& split, MakeBytes make = {});

  // Makes the sections before the gradients are computed, so that they can be written where they
  // are sent from. Gradients travel as fp32 then.
  void Open();
  // Returns the place of the i-th table's gradients, [keys * row_floats] in the caller's order;
  // empty if they have to be moved, and before Open().
  RowSpans<float> place(size_t i) const { return places_.empty() ? RowSpans<float>() : places_[i]; }
  // Makes requests to all servers, including those without a key, because their clock and ledger
  // must advance too. gradients[i] belongs to the i-th table: [keys * row_floats] in the caller's
  // order; ignored if the table has a place. Must be called once.
  std::vector<ServerRequest> Requests(const PushTerms& terms,
                                      std::span<const std::span<const float>> gradients);

 private:
  struct Section {
    Buffer buffer;
    std::span<std::byte> bytes;  // Bytes of the buffer; writable until it is sent.
  };
  Section MakeSection(ServerId server, DType format) const;
  // `exponent` as PushRequest::scale_exponent.
  ServerRequest RequestTo(ServerId server, const PushTerms& terms, int exponent,
                          Buffer gradients) const;

  const KeySplit* split_;
  MakeBytes make_;
  std::vector<Section> sections_;        // [servers], after Open().
  std::vector<RowSpans<float>> places_;  // [tables], after Open().
};

// Makes requests to the servers that hold keys of the split; rows[i] is [keys * row_floats].
std::vector<ServerRequest> StoreRequests(const KeySplit& split, Sequence sequence, Clock clock,
                                         std::span<const std::span<const float>> rows);
// Makes one AdvanceRequest for each server; for `squares` see there.
std::vector<ServerRequest> AdvanceRequests(uint32_t num_servers, Clock clock,
                                           const SquareSum& squares = {});
// Makes one SquaresRequest for each server.
std::vector<ServerRequest> SquaresRequests(uint32_t num_servers, Clock clock);

}  // namespace hdps
