// Grants and finds the sessions of peers that speak at data ports.
#include "common/net/zmq/data_sessions.h"

#include <algorithm>
#include <utility>

namespace hdps {

const SessionGrant& DataSessions::Grant(const CallerId& caller, const std::string& key,
                                        const std::string& own_key, AeadKind aead,
                                        std::optional<CallerId>* ended) {
  if (Session* const known = Find(caller); known != nullptr && known->key == key) {
    return known->grant;
  }
  if (const auto before = session_of_.find(caller.peer); before != session_of_.end()) {
    sessions_.erase(before->second);
    session_of_.erase(before);
  }
  if (sessions_.size() >= sessions_max_) MakeRoom(ended);
  SessionGrant grant;
  do {
    grant.session = DrawNumber();
  } while (sessions_.contains(grant.session));
  grant.aead = aead;
  grant.to_listener = SecretKey::Drawn();
  grant.to_dialer = SecretKey::Drawn();
  session_of_[caller.peer] = grant.session;
  const auto [session, made] = sessions_.emplace(
      grant.session, Session{caller, key, own_key, grant, DataSession::OfListener(grant), "", 0,
                             ++messages_heard_});
  return session->second.grant;
}

DataSessions::Session* DataSessions::Find(const CallerId& caller) {
  const auto id = session_of_.find(caller.peer);
  if (id == session_of_.end()) return nullptr;
  Session& session = sessions_.at(id->second);
  return session.caller == caller ? &session : nullptr;
}

DataSessions::Session* DataSessions::Decrypt(uint64_t listener, std::vector<zmq::message_t>* parts,
                                             bool* authentic) {
  const std::optional<AuthTag> tag = AuthTagIn(*parts);
  const auto session = tag ? sessions_.find(tag->session) : sessions_.end();
  if (session == sessions_.end()) return nullptr;
  *authentic = session->second.ends.Decrypt(parts, 1);
  if (!*authentic) return &session->second;
  const auto& routing_id = parts->front();
  session->second.routing_id.assign(routing_id.data<char>(), routing_id.size());
  session->second.listener = listener;
  parts->erase(parts->begin());
  session->second.heard = ++messages_heard_;
  return &session->second;
}

void DataSessions::OnNewKeys(const KeyRing& ring) {
  std::erase_if(sessions_, [&](const auto& entry) {
    return !ring.Allows(entry.second.key) || !ring.Allows(entry.second.own_key);
  });
  std::erase_if(session_of_, [&](const auto& entry) { return !sessions_.contains(entry.second); });
}

void DataSessions::MakeRoom(std::optional<CallerId>* ended) {
  const auto silent =
      std::ranges::min_element(sessions_, {}, [](const auto& entry) { return entry.second.heard; });
  *ended = silent->second.caller;
  session_of_.erase(silent->second.caller.peer);
  sessions_.erase(silent);
}

}  // namespace hdps
