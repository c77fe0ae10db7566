// The requests of one push, whose gradients are written where they are sent from if that can be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/base/buffer.h"
#include "common/base/dtype.h"
#include "common/base/ids.h"
#include "common/base/square_sum.h"
#include "kernels/row_spans.h"
#include "worker/exchange/key_split.h"
#include "worker/exchange/server_request.h"

namespace hdps {

// What a push says beside its keys and gradients; as the fields of PushRequest. `list` not 0: the
// servers have been sent the keys under this number.
struct PushTerms {
  Sequence sequence;
  Clock clock = 0;
  uint64_t num_examples = 0;
  uint64_t list = 0;
  DType format = DType::kFp32;
  double rate = 1;
  uint32_t epoch = 0;
};

// Invariant: from here to Requests() the split stays as it is.
class PushPlan {
 public:
  // Sections come from `make`, if there is one. Sections that are of no use are let go.
  explicit PushPlan(const KeySplit& split, MakeBytes make = {});

  // Makes the sections before the gradients are there, so that whoever makes these writes them
  // where they are sent from. They travel in 32 bits then.
  void Open();
  // The place of the i-th table's gradients, [keys * row_floats], in the caller's order; empty
  // where they have to be moved, and before Open().
  RowSpans<float> place(size_t i) const { return places_.empty() ? RowSpans<float>() : places_[i]; }
  // Requests to all servers, also to those without a key: their clock and ledger must move too.
  // gradients[i] belongs to the i-th table: [keys * row_floats], in the caller's order; not looked
  // at where it has a place. The plan is used up.
  std::vector<ServerRequest> Requests(const PushTerms& terms,
                                      std::span<const std::span<const float>> gradients);

 private:
  struct Section {
    Buffer buffer;
    std::span<std::byte> bytes;  // In it, to be written until it is sent.
  };
  Section MakeSection(ServerId server, DType format) const;
  ServerRequest RequestTo(ServerId server, const PushTerms& terms, Buffer gradients) const;

  const KeySplit* split_;
  MakeBytes make_;
  std::vector<Section> sections_;        // [servers], once it is open.
  std::vector<RowSpans<float>> places_;  // [tables], likewise.
};

// Requests to the servers that hold keys of the split; rows[i] is [keys * row_floats].
std::vector<ServerRequest> StoreRequests(const KeySplit& split, Sequence sequence, Clock clock,
                                         std::span<const std::span<const float>> rows);
// One AdvanceRequest to each server; `squares` as in there.
std::vector<ServerRequest> AdvanceRequests(uint32_t num_servers, Clock clock,
                                           const SquareSum& squares = {});
// One SquaresRequest to each server.
std::vector<ServerRequest> SquaresRequests(uint32_t num_servers, Clock clock);

}  // namespace hdps
