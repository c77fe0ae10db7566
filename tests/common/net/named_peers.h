// Makes peers from numbers, with the names that prove their peer ids.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <map>

#include "common/net/peer_name.h"

namespace hdps {

inline std::map<PeerId, PeerName>& NamesForTests() {
  static std::map<PeerId, PeerName> names;
  return names;
}

// Returns the peer id of a name derived from `n`.
inline PeerId NamedPeer(uint64_t n) {
  std::array<std::byte, 32> seed{};
  std::memcpy(seed.data(), &n, sizeof(n));
  const PeerName name = PeerNameOf(seed);
  NamesForTests()[name.peer] = name;
  return name.peer;
}
// Returns the name of a peer; it has its secret if NamedPeer() returned the peer, else none.
inline PeerName NameOf(PeerId peer) {
  const auto name = NamesForTests().find(peer);
  return name == NamesForTests().end() ? PeerName(peer) : name->second;
}

}  // namespace hdps
