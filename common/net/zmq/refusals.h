// Says of whom a frame was refused, once.
#pragma once

#include <set>
#include <string>
#include <utility>

#include "common/base/ids.h"
#include "common/net/keys/key_ring.h"

namespace hdps {

// Invariant: a line a peer, or with keys a line a peer and key: what went wrong once will with
// every retry. After many there are no more. No line tells a peer's number.
class Refusals {
 public:
  // `peer` 0: a stranger. `key`: what he has shown; null: none that is known.
  void Tell(PeerId peer, const AllowedKey* key, const std::string& why);

 private:
  std::set<std::pair<PeerId, std::string>> told_;
};

}  // namespace hdps
