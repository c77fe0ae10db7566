// Peer names over libsodium: Ed25519 signs, BLAKE2b hashes a public key to a number.
#include "common/net/peer_name.h"

#include <glog/logging.h>
#include <sodium.h>

#include <cstring>

namespace hdps {
namespace {

static_assert(std::tuple_size_v<PeerKey> == crypto_sign_PUBLICKEYBYTES);
static_assert(std::tuple_size_v<PeerSecret> == crypto_sign_SECRETKEYBYTES);
static_assert(std::tuple_size_v<PeerProof> == crypto_sign_BYTES);

void StartSodium() { CHECK_GE(sodium_init(), 0) << "libsodium finds no random numbers"; }

const unsigned char* Raw(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}
template <size_t kSize>
unsigned char* RawOut(std::array<std::byte, kSize>& bytes) {
  return reinterpret_cast<unsigned char*>(bytes.data());
}

}  // namespace

PeerName PeerNameOf(std::span<const std::byte, 32> seed) {
  static_assert(crypto_sign_SEEDBYTES == 32);
  StartSodium();
  PeerKey key;
  PeerName name;
  crypto_sign_seed_keypair(RawOut(key), RawOut(name.secret.emplace()), Raw(seed));
  name.peer = PeerIdOf(key);
  return name;
}

PeerName NewPeerName() {
  StartSodium();
  PeerName name;
  while (name.peer <= kServingPeer) {  // 0 means no peer, 1 is the scheduler.
    std::array<std::byte, 32> seed;
    randombytes_buf(seed.data(), seed.size());
    name = PeerNameOf(seed);
    sodium_memzero(seed.data(), seed.size());
  }
  return name;
}

PeerId PeerIdOf(const PeerKey& key) {
  std::array<unsigned char, crypto_generichash_BYTES> hash;
  crypto_generichash(hash.data(), hash.size(), Raw(key), key.size(), nullptr, 0);
  PeerId peer;
  std::memcpy(&peer.value, hash.data(), sizeof(peer.value));
  return peer;
}

PeerKey PeerKeyOf(const PeerName& name) {
  PeerKey key;
  crypto_sign_ed25519_sk_to_pk(RawOut(key), Raw(*name.secret));
  return key;
}

PeerProof ProofBy(const PeerName& name, std::span<const std::byte> message) {
  PeerProof proof;
  crypto_sign_detached(RawOut(proof), nullptr, Raw(message), message.size(), Raw(*name.secret));
  return proof;
}

bool Proves(const PeerProof& proof, const PeerKey& key, std::span<const std::byte> message) {
  return crypto_sign_verify_detached(Raw(proof), Raw(message), message.size(), Raw(key)) == 0;
}

}  // namespace hdps
