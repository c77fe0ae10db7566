// Keeps the sessions that a listening transport has granted, one for each caller.
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

// Invariant: a session belongs to one caller and to the key that the caller has shown over CURVE.
// It ends when that key or the listener's key of then is no longer allowed, or when the caller
// dials again. At most `sessions_max` are kept; the one silent for longest makes room.
class DataSessions {
 public:
  struct Session {
    CallerId caller;
    std::string key, own_key;  // Public keys of the caller and of the listener.
    SessionGrant grant;
    DataSession ends;
    // The connection and the listener of the last message, where the caller is answered.
    std::string routing_id = {};
    uint64_t listener = 0;
    uint64_t heard = 0;  // Number of the last message, counted over all sessions.
  };

  explicit DataSessions(size_t sessions_max = Callers::kCallersMax) : sessions_max_(sessions_max) {}

  size_t size() const { return sessions_.size(); }

  // Returns the session of `caller`, who has shown `key` at a listener with `own_key`. Makes a new
  // one with `aead` if there is none. `*ended` is set to the caller whose session had to make room,
  // if any.
  const SessionGrant& Grant(const CallerId& caller, const std::string& key,
                            const std::string& own_key, AeadKind aead,
                            std::optional<CallerId>* ended);
  Session* Find(const CallerId& caller);  // Returns null if the caller has no session.
  // Finds the session that the tag of a message to `listener` names; returns null if there is none.
  // Sets `*authentic` if the tag is right; then `parts` is decrypted and has lost routing id and
  // tag.
  Session* Decrypt(uint64_t listener, std::vector<zmq::message_t>* parts, bool* authentic);
  void OnNewKeys(const KeyRing& ring);

 private:
  void MakeRoom(std::optional<CallerId>* ended);

  const size_t sessions_max_;
  std::map<uint64_t, Session> sessions_;
  std::map<PeerId, uint64_t> session_of_;
  uint64_t messages_heard_ = 0;
};

}  // namespace hdps
