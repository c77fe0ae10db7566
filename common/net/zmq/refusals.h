// Logs the senders of refused frames, each once.
#pragma once

#include <set>
#include <string>
#include <utility>

#include "common/base/ids.h"
#include "common/net/keys/key_ring.h"

namespace hdps {

// Invariant: there is one line for each peer, or with keys for each peer and key, because every
// retry would fail the same way. After kToldMax lines there are no more. No line contains a peer's
// number.
class Refusals {
 public:
  // `peer` 0 means a stranger. `key` is the key that the sender showed, or null if none is known.
  void Tell(PeerId peer, const AllowedKey* key, const std::string& why);

 private:
  std::set<std::pair<PeerId, std::string>> told_;
};

}  // namespace hdps
