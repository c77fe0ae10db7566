// Listens, and listens again when keys have changed.
#include "common/net/zmq/listeners.h"

#include <glog/logging.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "common/net/keys/key_folder.h"
#include "common/net/listening.h"
#include "common/net/zmq/data_session.h"
#include "common/net/zmq/socket_settings.h"

namespace hdps {

Listeners::Router Listeners::NewRouter() {
  return {"", ring() == nullptr ? "" : ring()->own.public_key,
          WatchedSocket(context_, NewListener(context_, options_, ring()), true), ++last_number_,
          false};
}

Result<std::string> Listeners::Listen(const std::string& text) {
  HDPS_ASSIGN_OR_RETURN(const Address address,
                        AddressToListenOn(text, options_.insecure || options_.keys != nullptr));
  const bool opens = options_.data_port && ring() != nullptr;
  if (!opens && address.data_port != 0) {
    return Status(Code::kInvalidArgument,
                  "address " + text +
                      " names a port for data, which servers with --keys=DIR have alone; leave "
                      "out what follows the +");
  }
  try {
    Router router = NewRouter();
    zmq::socket_t& socket = router.connections.socket();
    if (zmq_bind(socket.handle(), address.Endpoint(address.port).c_str()) != 0) {
      return BindFailure(address, zmq_errno(), zmq_strerror(zmq_errno()));
    }
    router.endpoint = socket.get(zmq::sockopt::last_endpoint);
    HDPS_ASSIGN_OR_RETURN(const std::string dialed, AsOthersDial(address, router.endpoint));
    routers_.push_back(std::move(router));
    return opens && address.scheme == Address::Scheme::kTcp ? ListenForData(address, dialed)
                                                            : dialed;
  } catch (const zmq::error_t& error) {
    return Status(Code::kIoError, "listening on " + text + ": " + error.what());
  }
}

Result<std::string> Listeners::ListenForData(Address asked, const std::string& dialed) {
  if (asked.data_port == 0 && asked.port != 0) asked.data_port = asked.port + 1;
  if (asked.data_port > kPortMax) {
    return Status(Code::kInvalidArgument,
                  "address " + asked.Endpoint(asked.port) +
                      " leaves no port after it for data; choose another port, or write "
                      "tcp://HOST:PORT+DATA_PORT");
  }
  Router router{"", "", WatchedSocket(context_, NewDataListener(context_, options_), true),
                ++last_number_, true};
  zmq::socket_t& socket = router.connections.socket();
  const std::string endpoint = asked.Endpoint(asked.data_port);
  if (zmq_bind(socket.handle(), endpoint.c_str()) != 0) {
    HDPS_ASSIGN_OR_RETURN(const Address data, ParseAddress(endpoint));
    const Status failed = BindFailure(data, zmq_errno(), zmq_strerror(zmq_errno()));
    return Status(failed.code(), "the port for data: " + failed.message() +
                                     ", or name one: tcp://HOST:PORT+DATA_PORT");
  }
  router.endpoint = socket.get(zmq::sockopt::last_endpoint);
  HDPS_ASSIGN_OR_RETURN(const Address bound, ParseAddress(router.endpoint));
  HDPS_ASSIGN_OR_RETURN(Address address, ParseAddress(dialed));
  address.data_port = bound.port;
  routers_.push_back(std::move(router));
  LOG(INFO) << "data travels sealed at port " << address.data_port
            << "; a firewall has to let members in at ports " << address.port << " and "
            << address.data_port;
  return address.ToString();
}

bool Listeners::SendToCaller(const CallerId& id, const Frame& frame,
                             const std::vector<SharedBlock>& blocks) {
  return std::ranges::any_of(routers_, [&](Router& router) {
    return !router.data && SendParts(router.connections.socket(), &id, frame, blocks);
  });
}

bool Listeners::SendInSession(DataSessions::Session& session, const Frame& frame,
                              const std::vector<SharedBlock>& blocks) {
  const auto router = std::ranges::find(routers_, session.listener, &Router::number);
  if (session.routing_id.empty() || router == routers_.end()) return false;
  std::vector<zmq::message_t> parts = PartsOf(frame, blocks);
  session.ends.Encrypt(&parts);
  parts.emplace(parts.begin(), session.routing_id.data(), session.routing_id.size());
  return SendMessage(router->connections.socket(), parts);
}

void Listeners::OnNewKeys(Authenticator& authenticator, int64_t now_ms) {
  const bool revoked = std::ranges::any_of(
      authenticator.admitted(), [&](const std::string& key) { return !ring()->Allows(key); });
  if (revoked) authenticator.ForgetAdmitted();
  const auto ends = [&](Router& router) {
    return !router.data && (revoked || !ring()->Allows(router.own_key));
  };
  for (Router& router : routers_) {
    if (router.data) continue;
    zmq::socket_t& socket = router.connections.socket();
    const bool another = router.own_key != ring()->own.public_key;
    if (!router.endpoint.empty() && (another || ends(router))) {
      zmq_unbind(socket.handle(), router.endpoint.c_str());
      to_bind_.push_back(std::exchange(router.endpoint, ""));
    }
    // Drops frames that wait for peers that may no longer have them.
    if (!ends(router)) continue;
    socket.set(zmq::sockopt::linger, 0);
    limits_.ForgetListener(router.number);
  }
  std::erase_if(routers_, ends);
  Maintain(now_ms);
}

void Listeners::TakeEvents() {
  for (Router& router : routers_) {
    const HandshakeCounts counts = router.connections.TakeHandshakes(
        [&](const ConnectionEvent& event) { limits_.OnEvent(event, router.number); });
    // Logged here because events are read from several places.
    if (ring() != nullptr && handshakes_.failed == 0 && counts.failed > 0) {
      LOG(WARNING)
          << "a connection has failed its handshake: it has no key, or not the one of this "
             "listener; further ones are counted";
    }
    handshakes_.opened += counts.opened;
    handshakes_.finished += counts.finished;
    handshakes_.failed += counts.failed;
  }
}

void Listeners::EndService(MonotonicClock& clock) {
  if (!service_) return;
  const Service served = *std::exchange(service_, std::nullopt);
  const auto router = std::ranges::find(routers_, served.listener, &Router::number);
  if (router == routers_.end()) return;
  router->guests.OnServed(served.began_ns, clock.NowNs(), limits_.size());
}

int64_t Listeners::AddTo(std::vector<zmq_pollitem_t>* items, int64_t now_ns) {
  int64_t rest_ns = std::numeric_limits<int64_t>::max();
  for (Router& router : routers_) {
    const bool rests = router.guests.Rests(now_ns);
    if (rests) rest_ns = std::min(rest_ns, router.guests.rests_until_ns() - now_ns);
    const auto events = static_cast<int16_t>(rests ? 0 : ZMQ_POLLIN);
    items->push_back({router.connections.socket().handle(), 0, events, 0});
    items->push_back({nullptr, router.connections.events_fd(), ZMQ_POLLIN, 0});
  }
  return rest_ns / 1'000'000 + 1;
}

void Listeners::OnMessage(const Arrival& arrival, bool refused) {
  // The message may arrive before the event of its connection was read.
  if (limits_.OnMessage(arrival, refused)) return;
  TakeEvents();
  limits_.OnMessage(arrival, refused);
}

void Listeners::Maintain(int64_t now_ms) {
  TakeEvents();
  limits_.Look(now_ms);
  BindAnew();
}

void Listeners::BindAnew() {
  // The old socket gives its port back only some time after it was told to.
  while (!to_bind_.empty()) {
    try {
      Router router = NewRouter();
      router.endpoint = to_bind_.back();
      if (zmq_bind(router.connections.socket().handle(), router.endpoint.c_str()) != 0) return;
      LOG(INFO) << "listening on " << router.endpoint << " anew, as keys have changed";
      routers_.push_back(std::move(router));
      to_bind_.pop_back();
    } catch (const zmq::error_t& error) {  // Too many open files; tried again later.
      LOG_EVERY_N(ERROR, 100) << "listening on " << to_bind_.back() << ": " << error.what();
      return;
    }
  }
}

}  // namespace hdps
