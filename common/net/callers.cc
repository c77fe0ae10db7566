// The rules by which a connection may speak in a peer's name.
#include "common/net/callers.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace hdps {

CallerIdBytes BytesOf(const CallerId& id) {
  CallerIdBytes bytes;
  bytes[0] = 'h';
  const uint64_t numbers[] = {id.peer.value, id.secret, id.dial};
  static_assert(sizeof(numbers) + 1 == sizeof(bytes));
  std::memcpy(bytes.data() + 1, numbers, sizeof(numbers));
  return bytes;
}

std::optional<CallerId> ParseCallerId(std::span<const char> bytes) {
  uint64_t numbers[3];
  if (bytes.size() != sizeof(CallerIdBytes) || bytes[0] != 'h') return std::nullopt;
  std::memcpy(numbers, bytes.data() + 1, sizeof(numbers));
  return CallerId{{numbers[0]}, numbers[1], numbers[2]};
}

Status Callers::Hear(const CallerId& id) {
  const auto refused = [](const std::string& why) { return Status(Code::kInvalidArgument, why); };
  if (id.peer.value <= kSchedulerPeer.value) {
    return refused("nobody dials under that number: the scheduler is heard where it was dialed");
  }
  if (id.peer == self_) return refused("it calls itself by this process' own number");
  const CallerId* known = Find(id.peer);
  if (known != nullptr && known->secret != id.secret) {
    return refused("this number is that of a peer who proved himself otherwise");
  }
  if (known != nullptr && id.dial < known->dial) {
    return refused("the peer has dialed anew since it was sent");
  }
  if (known == nullptr && callers_.size() >= callers_max_) ForgetTheMostSilent();
  callers_[id.peer] = {id, ++frames_heard_};
  return Status();
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
