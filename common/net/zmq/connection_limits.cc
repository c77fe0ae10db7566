// Counts connections, bytes and refused frames, and chooses the connection to end.
#include "common/net/zmq/connection_limits.h"

#include <glog/logging.h>

#include <algorithm>

namespace hdps {
namespace {

constexpr size_t kToldMax = 1024;

}  // namespace

void ConnectionLimits::OnEvent(const ConnectionEvent& event, uint64_t listener) {
  const auto known = connections_.find(event.fd);
  // If this listener's connection has ended, the descriptor may already belong to another listener.
  if (known != connections_.end() && (event.opened || known->second.listener == listener)) {
    Forget(known);
  }
  if (event.opened) Open(event.fd, event.endpoint, listener);
}

void ConnectionLimits::Open(int fd, const std::string& endpoint, uint64_t listener) {
  std::optional<OpenConnections::Identity> identity = open_.Identify(fd, endpoint);
  if (!identity) return;  // It has ended meanwhile; the next event will say so.
  Connection& connection = connections_[fd];
  connection.serial = ++last_serial_;
  connection.cookie = identity->cookie;
  connection.listener = listener;
  connection.address = std::move(identity->address);
  unheard_[connection.serial] = fd;
  // Ends the oldest connection without a good frame, because it has had the most time to send one.
  // So a member gets through even while strangers fill the limit. If all others have sent a good
  // frame, the new connection is ended.
  if (connections_.size() > limits_.connections_max) {
    End(connections_.find(unheard_.begin()->second), PeerLimit::kConnections);
  }
}

bool ConnectionLimits::Count(int fd, Connection& connection) {
  const std::optional<uint64_t> received = open_.ReceivedBy(fd, connection.cookie);
  if (!received) return false;
  connection.received = *received;
  connection.handed_out = std::min(connection.handed_out, connection.received);
  return true;
}

bool ConnectionLimits::OnMessage(const Arrival& arrival, bool refused) {
  const auto which = connections_.find(arrival.connection);
  if (which == connections_.end()) return false;
  Connection& connection = which->second;
  if (!arrival.address.empty() && connection.address != kOverIpc &&
      connection.address != arrival.address) {
    return true;
  }
  connection.handed_out += arrival.wire_bytes;
  if (!refused) {
    if (!connection.heard) unheard_.erase(connection.serial);
    connection.heard = true;
  } else if (++connection.refused > limits_.refused_max) {
    End(which, PeerLimit::kRefused);
  }
  return true;
}

void ConnectionLimits::Look(int64_t now_ms) {
  if (now_ms < looked_ms_ + kLookEveryMs) return;
  looked_ms_ = now_ms;
  held_bytes_ = 0;
  for (auto next = connections_.begin(); next != connections_.end();) {
    const auto which = next++;
    Connection& connection = which->second;
    if (!Count(which->first, connection)) {
      Forget(which);
    } else if (connection.held() > limits_.held_bytes_max) {
      End(which, PeerLimit::kHeldBytes);
    } else {
      held_bytes_ += connection.held();
    }
  }
  EndLargestHolders();
}

void ConnectionLimits::EndLargestHolders() {
  while (held_bytes_ > limits_.all_held_bytes_max && !connections_.empty()) {
    const auto largest = std::max_element(
        connections_.begin(), connections_.end(),
        [](const auto& a, const auto& b) { return a.second.held() < b.second.held(); });
    held_bytes_ -= largest->second.held();
    End(largest, PeerLimit::kAllHeldBytes);
  }
}

void ConnectionLimits::End(ByDescriptor::iterator which, PeerLimit why) {
  Tell(which->second, why);
  open_.End(which->first, which->second.cookie);
  Forget(which);
}

void ConnectionLimits::Tell(const Connection& connection, PeerLimit why) {
  ++ended_[why];
  if (told_.size() < kToldMax && told_.emplace(connection.address, why).second) {
    LOG(WARNING) << "ended a connection from " << connection.address << ": the limit on "
                 << WordOf(why) << "; further ones are counted";
  }
}

void ConnectionLimits::Forget(ByDescriptor::iterator which) {
  const Connection& connection = which->second;
  if (open_.TakeEndedByParts(connection.cookie)) Tell(connection, PeerLimit::kParts);
  unheard_.erase(connection.serial);
  connections_.erase(which);
}

void ConnectionLimits::ForgetListener(uint64_t listener) {
  for (auto next = connections_.begin(); next != connections_.end();) {
    const auto which = next++;
    if (which->second.listener == listener) Forget(which);
  }
}

}  // namespace hdps
