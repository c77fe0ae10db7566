// The lines of the log about refused frames.
#include "common/net/zmq/refusals.h"

#include <glog/logging.h>

namespace hdps {
namespace {

constexpr size_t kToldMax = 1024;

}  // namespace

void Refusals::Tell(PeerId peer, const AllowedKey* key, const std::string& why) {
  std::string who = peer == PeerId() ? "a stranger" : "peer " + std::to_string(peer.value);
  if (key != nullptr) who = std::string(WordOf(key->role)) + " " + key->name + ", " + who;
  if (told_.size() >= kToldMax || !told_.insert(who).second) return;
  LOG(WARNING) << "refused a frame of " << who << ": " << why;
}

}  // namespace hdps
