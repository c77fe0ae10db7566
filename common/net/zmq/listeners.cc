// Listens, and listens anew when keys have changed.
#include "common/net/zmq/listeners.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "common/net/keys/key_folder.h"
#include "common/net/listening.h"
#include "common/net/zmq/socket_settings.h"

namespace hdps {

Listeners::Router Listeners::NewRouter() {
  return {"", ring() == nullptr ? "" : ring()->own.public_key,
          WatchedSocket(context_, NewListener(context_, options_, ring()), true), ++last_number_};
}

Result<std::string> Listeners::Listen(const std::string& text) {
  HDPS_ASSIGN_OR_RETURN(const Address address,
                        AddressToListenOn(text, options_.insecure || options_.keys != nullptr));
  try {
    Router router = NewRouter();
    zmq::socket_t& socket = router.connections.socket();
    if (zmq_bind(socket.handle(), address.ToString().c_str()) != 0) {
      return BindFailure(address, zmq_errno(), zmq_strerror(zmq_errno()));
    }
    router.endpoint = socket.get(zmq::sockopt::last_endpoint);
    HDPS_ASSIGN_OR_RETURN(const std::string dialed, AsOthersDial(address, router.endpoint));
    routers_.push_back(std::move(router));
    return dialed;
  } catch (const zmq::error_t& error) {
    return Status(Code::kIoError, "listening on " + text + ": " + error.what());
  }
}

void Listeners::OnNewKeys(Authenticator& authenticator, int64_t now_ms) {
  const bool revoked = std::ranges::any_of(
      authenticator.admitted(), [&](const std::string& key) { return !ring()->Allows(key); });
  if (revoked) authenticator.ForgetAdmitted();
  const auto ends = [&](Router& router) { return revoked || !ring()->Allows(router.own_key); };
  for (Router& router : routers_) {
    zmq::socket_t& socket = router.connections.socket();
    const bool another = router.own_key != ring()->own.public_key;
    if (!router.endpoint.empty() && (another || ends(router))) {
      zmq_unbind(socket.handle(), router.endpoint.c_str());
      to_bind_.push_back(std::exchange(router.endpoint, ""));
    }
    // What waits for somebody who may no longer have it is dropped.
    if (!ends(router)) continue;
    socket.set(zmq::sockopt::linger, 0);
    limits_.ForgetListener(router.number);
  }
  std::erase_if(routers_, ends);
  Tend(now_ms);
}

void Listeners::TakeEvents(int64_t now_ms) {
  for (Router& router : routers_) {
    const HandshakeCounts counts =
        router.connections.TakeHandshakes([&](const ConnectionEvent& event) {
          limits_.OnEvent(event, router.number, !router.own_key.empty(), now_ms);
        });
    // Said here, whoever asks for the events.
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

void Listeners::OnMessage(const Arrival& arrival, bool refused, int64_t now_ms) {
  // It may have spoken before we have been told of it.
  if (!limits_.Knows(arrival.connection)) TakeEvents(now_ms);
  limits_.OnMessage(arrival, refused, now_ms);
}

void Listeners::Tend(int64_t now_ms) {
  TakeEvents(now_ms);
  limits_.Look(now_ms);
  BindAnew();
}

void Listeners::BindAnew() {
  // The socket of before gives its port back a moment after it was told to.
  while (!to_bind_.empty()) {
    try {
      Router router = NewRouter();
      router.endpoint = to_bind_.back();
      if (zmq_bind(router.connections.socket().handle(), router.endpoint.c_str()) != 0) return;
      LOG(INFO) << "listening on " << router.endpoint << " anew, as keys have changed";
      routers_.push_back(std::move(router));
      to_bind_.pop_back();
    } catch (const zmq::error_t& error) {  // Too many open files: tried again.
      LOG_EVERY_N(ERROR, 100) << "listening on " << to_bind_.back() << ": " << error.what();
      return;
    }
  }
}

}  // namespace hdps
