// The listening end of sessions: the data ports of one transport, and with whom it has which.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>
#include <zmq.hpp>

#include "common/net/callers.h"
#include "common/net/shared/shared_memory_links.h"
#include "common/net/transport.h"
#include "common/net/zmq/data_session.h"

namespace hdps {

// Invariant: a session belongs to one caller and the key that he has shown over CURVE, and ends
// when that key, or the one that he was shown, is not allowed any more, or when he dials anew. At
// most `sessions_max` are kept; the one that was silent for longest makes room.
class DataListeners {
 public:
  struct Session {
    CallerId caller;
    std::string key, own_key;  // Public ones.
    SessionGrant grant;
    DataSession ends;
    // By which connection its last message came, and where to: he is answered there.
    std::string routing_id = {};
    size_t router = 0;
    uint64_t heard = 0;  // The number of the last message, over all sessions.
  };

  DataListeners(zmq::context_t& context, const TransportOptions& options,
                size_t sessions_max = Callers::kCallersMax)
      : context_(context), options_(options), sessions_max_(sessions_max) {}

  size_t size() const { return routers_.size(); }
  zmq::socket_t& operator[](size_t i) { return routers_[i]; }
  size_t num_sessions() const { return sessions_.size(); }

  // Opens the data port that belongs to the address `asked`, which others dial as `dialed`: the one
  // it names, else the one after its port, else any. Returns the address with that port; without
  // an authenticated data plane, and for paths, `dialed`.
  Result<std::string> Listen(const std::string& asked, const std::string& dialed);

  // The session of `caller`, who has shown `key`, and to whom `own_key` was shown. `ended`: whose
  // session had to make room.
  const SessionGrant& Grant(const CallerId& caller, const std::string& key,
                            const std::string& own_key, std::optional<CallerId>* ended);
  Session* Find(const CallerId& caller);  // Null: he has none.
  // False also before anything was heard in it.
  bool Send(Session& session, const Frame& frame, const std::vector<SharedBlock>& blocks);
  // In whose session a message claims to be, which came to socket `i`; null: there is no such one.
  // `sealed`: it is indeed; then routing id and seal are taken off.
  Session* Open(size_t i, std::vector<zmq::message_t>* parts, bool* sealed);
  // The ring is another.
  void OnNewKeys();

 private:
  void MakeRoom(std::optional<CallerId>* ended);

  zmq::context_t& context_;
  const TransportOptions& options_;
  const size_t sessions_max_;
  std::vector<zmq::socket_t> routers_;
  std::map<uint64_t, Session> sessions_;
  std::map<PeerId, uint64_t> session_of_;
  uint64_t messages_heard_ = 0;
};

}  // namespace hdps
