// The listening end of sessions: with whom one transport has which.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>
#include <zmq.hpp>

#include "common/net/callers.h"
#include "common/net/keys/key_ring.h"
#include "common/net/zmq/data_session.h"

namespace hdps {

// Invariant: a session belongs to one caller and the key that he has shown over CURVE, and ends
// when that key, or the one that he was shown, is not allowed any more, or when he dials anew. At
// most `sessions_max` are kept; the one that was silent for longest makes room.
class DataSessions {
 public:
  struct Session {
    CallerId caller;
    std::string key, own_key;  // Public ones.
    SessionGrant grant;
    DataSession ends;
    // By which connection its last message came, and to which listener: he is answered there.
    std::string routing_id = {};
    uint64_t listener = 0;
    uint64_t heard = 0;  // The number of the last message, over all sessions.
  };

  explicit DataSessions(size_t sessions_max = Callers::kCallersMax) : sessions_max_(sessions_max) {}

  size_t size() const { return sessions_.size(); }

  // The session of `caller`, who has shown `key`, and to whom `own_key` was shown; a new one is
  // sealed by `aead`. `ended`: whose session had to make room.
  const SessionGrant& Grant(const CallerId& caller, const std::string& key,
                            const std::string& own_key, AeadKind aead,
                            std::optional<CallerId>* ended);
  Session* Find(const CallerId& caller);  // Null: he has none.
  // Finds the session that a message which came to `listener` names in its tag; null where there is
  // none. `sealed`: the message is of that session; then it is decrypted, without routing id and
  // tag.
  Session* Open(uint64_t listener, std::vector<zmq::message_t>* parts, bool* sealed);
  void OnNewKeys(const KeyRing& ring);

 private:
  void MakeRoom(std::optional<CallerId>* ended);

  const size_t sessions_max_;
  std::map<uint64_t, Session> sessions_;
  std::map<PeerId, uint64_t> session_of_;
  uint64_t messages_heard_ = 0;
};

}  // namespace hdps
