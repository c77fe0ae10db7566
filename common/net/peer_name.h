// The number of a process, and the secret by which it proves that the number is its own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "common/base/ids.h"

namespace hdps {

// The lengths of Ed25519: the public key, the secret that its owner alone has, and a signature.
using PeerKey = std::array<std::byte, 32>;
using PeerSecret = std::array<std::byte, 64>;
using PeerProof = std::array<std::byte, 64>;

// How a process names itself. A number that was drawn here is a hash of a public key: so whoever
// reads it, in a join, a view or a saved state, can tell its owner from everybody else.
struct PeerName {
  PeerId peer;
  // Without one nobody hears the process over ZeroMQ where it dials.
  std::optional<PeerSecret> secret = std::nullopt;

  PeerName() = default;
  PeerName(PeerId number) : peer(number) {}  // NOLINT(google-explicit-constructor)
};

// A name that no other process has.
PeerName NewPeerName();
// The name that follows from 32 bytes, which are as secret as it.
PeerName PeerNameOf(std::span<const std::byte, 32> seed);

// The number that goes with a key.
PeerId PeerIdOf(const PeerKey& key);
// Requires: `name` has a secret.
PeerKey PeerKeyOf(const PeerName& name);
PeerProof ProofBy(const PeerName& name, std::span<const std::byte> message);
bool Proves(const PeerProof& proof, const PeerKey& key, std::span<const std::byte> message);

}  // namespace hdps
