// The number of a process, and the secret by which it proves that it owns the number.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "common/base/ids.h"

namespace hdps {

// The number at which every process that serves predictions listens. No process draws it.
inline constexpr PeerId kServingPeer{2};

// Ed25519: the public key, the owner's secret key, and a signature.
using PeerKey = std::array<std::byte, 32>;
using PeerSecret = std::array<std::byte, 64>;
using PeerProof = std::array<std::byte, 64>;

// The identity of a process. Its number is a hash of a public key, so everybody who reads the
// number, in a join, a view or a saved state, can tell its owner from all others.
struct PeerName {
  PeerId peer;
  // Signs the proof. Listeners over ZeroMQ refuse a process that dials without one.
  std::optional<PeerSecret> secret = std::nullopt;

  PeerName() = default;
  PeerName(PeerId number) : peer(number) {}  // NOLINT(google-explicit-constructor)
};

// Draws a name that no other process has.
PeerName NewPeerName();
// Derives a name from 32 bytes, which must be kept as secret as the name's secret.
PeerName PeerNameOf(std::span<const std::byte, 32> seed);

// Returns the number that belongs to a public key.
PeerId PeerIdOf(const PeerKey& key);
// Requires: `name` has a secret.
PeerKey PeerKeyOf(const PeerName& name);
PeerProof ProofBy(const PeerName& name, std::span<const std::byte> message);
bool Proves(const PeerProof& proof, const PeerKey& key, std::span<const std::byte> message);

}  // namespace hdps
