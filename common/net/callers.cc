// Checks that a connection may speak in a peer's name.
#include "common/net/callers.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace hdps {
namespace {

// Writes or reads a value at `at` and moves `at` past it.
template <typename Value>
void Put(const Value& value, char*& at) {
  std::memcpy(at, &value, sizeof(value));
  at += sizeof(value);
}
template <typename Value>
void Take(const char*& at, Value* value) {
  std::memcpy(value, at, sizeof(*value));
  at += sizeof(*value);
}

// Returns the bytes that the proof signs.
std::span<const std::byte> ProvedIn(const CallerIdBytes& bytes) {
  return std::as_bytes(std::span(bytes)).first<sizeof(CallerIdBytes) - sizeof(PeerProof)>();
}

}  // namespace

CallerId CallerIdOf(const PeerName& self, PeerId listener, uint64_t dial) {
  CallerId id{self.peer, dial, listener, {}, {}};
  if (!self.secret) return id;
  id.key = PeerKeyOf(self);
  id.proof = ProofBy(self, ProvedIn(BytesOf(id)));
  return id;
}

CallerIdBytes BytesOf(const CallerId& id) {
  CallerIdBytes bytes;
  char* at = bytes.data();
  Put('h', at);
  Put(id.peer.value, at);
  Put(id.dial, at);
  Put(id.listener.value, at);
  Put(id.key, at);
  Put(id.proof, at);
  return bytes;
}

std::optional<CallerId> ParseCallerId(std::span<const char> bytes) {
  if (bytes.size() != sizeof(CallerIdBytes) || bytes[0] != 'h') return std::nullopt;
  CallerId id;
  const char* at = bytes.data() + 1;
  Take(at, &id.peer.value);
  Take(at, &id.dial);
  Take(at, &id.listener.value);
  Take(at, &id.key);
  Take(at, &id.proof);
  return id;
}

Status Callers::Hear(const CallerId& id) {
  const auto refused = [](const std::string& why) { return Status(Code::kInvalidArgument, why); };
  const auto known = callers_.find(id.peer);
  if (known != callers_.end() && known->second.id == id) {
    known->second.heard = ++frames_heard_;
    return Status();
  }
  if (id.peer.value <= kSchedulerPeer.value) {
    return refused("nobody dials under that number: the scheduler is heard where it was dialed");
  }
  if (id.peer == self_) return refused("it calls itself by this process' own number");
  if (known != callers_.end() && id.dial < known->second.id.dial) {
    return refused("the peer has dialed anew since it was sent");
  }
  if (!IsProved(id)) return refused("it does not prove that the number it names is its own");
  if (known == callers_.end() && callers_.size() >= callers_max_) ForgetTheMostSilent();
  Caller& caller = callers_[id.peer];
  caller.id = id;
  caller.heard = ++frames_heard_;
  return Status();
}

bool Callers::KeepsRole(PeerId peer, KeyRole role) {
  const auto found = callers_.find(peer);
  if (found == callers_.end()) return true;
  if (!found->second.role) found->second.role = role;
  return found->second.role == role;
}

bool Callers::IsProved(const CallerId& id) {
  if (id.listener != self_ && id.listener != PeerId()) return false;
  if (PeerIdOf(id.key) != id.peer) return false;
  const CallerIdBytes bytes = BytesOf(id);
  if (unproved_.contains(bytes)) return false;
  if (Proves(id.proof, id.key, ProvedIn(bytes))) return true;
  if (unproved_.size() >= callers_max_) unproved_.clear();
  unproved_.insert(bytes);
  return false;
}

const CallerId* Callers::Find(PeerId peer) const {
  const auto found = callers_.find(peer);
  return found == callers_.end() ? nullptr : &found->second.id;
}

void Callers::ForgetTheMostSilent() {
  callers_.erase(std::min_element(
      callers_.begin(), callers_.end(),
      [](const auto& a, const auto& b) { return a.second.heard < b.second.heard; }));
}

}  // namespace hdps
