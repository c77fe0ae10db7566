// Lets the requests of a replayed run at one shard group pass in the order of its record.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/net/node.h"
#include "server/record/order_format.h"

namespace hdps {

// Invariant: requests that are entries of the record pass in its order, each once. All others pass
// as they come: reads, stores, repeats of what has passed, and steps behind the record's end.
//
// Used by one thread at a time, as the rows are.
class OrderGate {
 public:
  // OnTick() fails if requests are held for `patience_ms` and none has passed.
  OrderGate(std::vector<OrderEntry> order, TimeMs patience_ms);

  struct Held {
    PeerId from;
    Frame frame;
  };
  // Returns whether a worker's request may be served now; otherwise holds it, in place of an
  // earlier copy.
  bool Passes(PeerId from, WorkerId worker, const Frame& frame);
  // Returns the held request whose turn it is, if it has come.
  std::optional<Held> TakeDue();
  // Errors: kCorruption names the request that does not come.
  Status OnTick(TimeMs now);
  // Returns what has not passed, such as "12 requests, first the push of step 17 of worker 2";
  // empty if all have.
  std::string Missing() const;

 private:
  std::string Awaited() const;  // Requires: an entry has not passed.
  void Pass() { ++next_, ++passed_; }

  const std::vector<OrderEntry> order_;
  const TimeMs patience_ms_;
  std::map<OrderEntry, size_t> places_;  // Of each entry in `order_`.
  size_t next_ = 0;                      // The place whose turn it is.
  std::map<OrderEntry, Held> held_;
  size_t passed_ = 0, passed_before_ = 0;  // Until now, and until `since_`.
  std::optional<TimeMs> since_;            // When requests were held that none has passed since.
};

}  // namespace hdps
