// Writes the log lines about refused frames.
#include "common/net/zmq/refusals.h"

#include <glog/logging.h>

namespace hdps {
namespace {

constexpr size_t kToldMax = 1024;

}  // namespace

void Refusals::Tell(PeerId peer, const AllowedKey* key, const std::string& why) {
  std::string who = peer == PeerId() ? "a stranger" : "a peer";
  if (key != nullptr) who = std::string(WordOf(key->role)) + " " + key->name;
  if (told_.size() >= kToldMax || !told_.emplace(peer, who).second) return;
  LOG(WARNING) << "refused a frame of " << who << ": " << why;
}

}  // namespace hdps
