// Opens data ports, and keeps the sessions of those who may speak there.
#include "common/net/zmq/data_listeners.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "common/net/listening.h"
#include "common/net/zmq/parts.h"

namespace hdps {

Result<std::string> DataListeners::Listen(const std::string& asked, const std::string& dialed) {
  HDPS_ASSIGN_OR_RETURN(Address address, ParseAddress(asked));
  const bool opens = options_.data_plane == DataPlane::kAuthenticated && options_.keys != nullptr;
  if (!opens && address.data_port != 0) {
    return Status(Code::kInvalidArgument,
                  "address " + asked +
                      " names a port for data, which is there with keys and --data_plane=" +
                      std::string(WordOf(DataPlane::kAuthenticated)) + " alone");
  }
  if (!opens || address.scheme != Address::Scheme::kTcp) return dialed;
  if (address.data_port == 0 && address.port != 0) address.data_port = address.port + 1;
  if (address.data_port > kPortMax) {
    return Status(Code::kInvalidArgument, "address " + asked +
                                              " leaves no port after it for data; choose another "
                                              "port, or write tcp://HOST:PORT+DATA_PORT");
  }
  try {
    zmq::socket_t router = NewDataListener(context_, options_);
    const std::string endpoint = address.Endpoint(address.data_port);
    if (zmq_bind(router.handle(), endpoint.c_str()) != 0) {
      HDPS_ASSIGN_OR_RETURN(const Address data, ParseAddress(endpoint));
      const Status failed = BindFailure(data, zmq_errno(), zmq_strerror(zmq_errno()));
      return Status(failed.code(), "the port for data: " + failed.message());
    }
    HDPS_ASSIGN_OR_RETURN(const Address bound,
                          ParseAddress(router.get(zmq::sockopt::last_endpoint)));
    HDPS_ASSIGN_OR_RETURN(address, ParseAddress(dialed));
    address.data_port = bound.port;
    routers_.push_back(std::move(router));
  } catch (const zmq::error_t& error) {
    return Status(Code::kIoError, "listening on " + asked + ": " + error.what());
  }
  LOG(INFO) << "data plane: frames to and from port " << address.data_port
            << " are authenticated and in order, and not encrypted; a firewall has to let members "
               "in at ports "
            << address.port << " and " << address.data_port;
  return address.ToString();
}

const SessionGrant& DataListeners::Grant(const CallerId& caller, const std::string& key,
                                         const std::string& own_key,
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
    DrawSecret(std::as_writable_bytes(std::span(&grant.session, 1)));
  } while (sessions_.contains(grant.session));
  DrawSecret(grant.to_listener);
  DrawSecret(grant.to_dialer);
  session_of_[caller.peer] = grant.session;
  const DataSession ends(grant.session, grant.to_dialer, grant.to_listener);
  const auto [session, made] = sessions_.emplace(
      grant.session, Session{caller, key, own_key, grant, ends, "", 0, ++messages_heard_});
  return session->second.grant;
}

DataListeners::Session* DataListeners::Find(const CallerId& caller) {
  const auto id = session_of_.find(caller.peer);
  if (id == session_of_.end()) return nullptr;
  Session& session = sessions_.at(id->second);
  return session.caller == caller ? &session : nullptr;
}

bool DataListeners::Send(Session& session, const Frame& frame,
                         const std::vector<SharedBlock>& blocks) {
  if (session.routing_id.empty()) return false;
  std::vector<zmq::message_t> parts = PartsOf(frame, blocks);
  session.ends.Seal(&parts);
  parts.emplace(parts.begin(), session.routing_id.data(), session.routing_id.size());
  return SendMessage(routers_[session.router], parts);
}

DataListeners::Session* DataListeners::Open(size_t i, std::vector<zmq::message_t>* parts,
                                            bool* sealed) {
  const std::optional<FrameSeal> seal = SealIn(*parts);
  const auto session = seal ? sessions_.find(seal->session) : sessions_.end();
  if (session == sessions_.end()) return nullptr;
  *sealed = session->second.ends.Open(parts, 1);
  if (!*sealed) return &session->second;
  const auto& routing_id = parts->front();
  session->second.routing_id.assign(routing_id.data<char>(), routing_id.size());
  session->second.router = i;
  parts->erase(parts->begin());
  session->second.heard = ++messages_heard_;
  return &session->second;
}

void DataListeners::OnNewKeys() {
  const KeyRing& ring = options_.keys->ring();
  std::erase_if(sessions_, [&](const auto& entry) {
    return !ring.Allows(entry.second.key) || !ring.Allows(entry.second.own_key);
  });
  std::erase_if(session_of_, [&](const auto& entry) { return !sessions_.contains(entry.second); });
}

void DataListeners::MakeRoom(std::optional<CallerId>* ended) {
  const auto silent =
      std::ranges::min_element(sessions_, {}, [](const auto& entry) { return entry.second.heard; });
  *ended = silent->second.caller;
  session_of_.erase(silent->second.caller.peer);
  sessions_.erase(silent);
}

}  // namespace hdps
