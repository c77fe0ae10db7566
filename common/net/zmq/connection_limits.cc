// Counts connections, bytes and frames, and picks whom to end.
#include "common/net/zmq/connection_limits.h"

#include <glog/logging.h>

#include <algorithm>
#include <iterator>

namespace hdps {
namespace {

// Greeting, WELCOME and READY of CURVE are 301 bytes of a listener; without the last, or with the
// ERROR that stands in its place where the key is not allowed, they are fewer than these.
constexpr uint64_t kLetInBytes = 270;
constexpr size_t kToldMax = 1024;
// Addresses that have no connection are remembered only for their rate, so not for long.
constexpr size_t kIdleAddressesMax = 8192;

}  // namespace

bool ConnectionLimits::Rate::Exceeded(uint32_t per_second, int64_t now_ms) {
  const int64_t most = int64_t{2000} * per_second;
  if (since_ms == 0) left = most;
  left = std::min(most, left + std::max<int64_t>(now_ms - since_ms, 0) * per_second);
  since_ms = now_ms;
  if (left < 1000) return true;
  left -= 1000;
  return false;
}

void ConnectionLimits::OnEvent(const ConnectionEvent& event, uint64_t listener, bool keys,
                               int64_t now_ms) {
  const auto known = connections_.find(event.fd);
  // Another listener's connection has that number by now where this one's has ended.
  if (known != connections_.end() && (event.opened || known->second.listener == listener)) {
    Forget(known);
  }
  if (event.opened) Open(event.fd, event.endpoint, listener, keys, now_ms);
}

void ConnectionLimits::Open(int fd, const std::string& endpoint, uint64_t listener, bool keys,
                            int64_t now_ms) {
  std::optional<OpenConnections::Identity> identity = open_.Identify(fd, endpoint);
  if (!identity) return;  // It has ended meanwhile, as the next event will say.
  if (addresses_.size() > kIdleAddressesMax) {
    std::erase_if(addresses_, [](const auto& entry) { return entry.second.connections == 0; });
  }
  const std::string& address = identity->address;
  Address& others = addresses_[address];
  ++others.connections;
  const bool too_fast = others.opened.Exceeded(limits_.opened_per_second_max, now_ms);
  const bool too_many = others.connections > limits_.connections_per_address_max;
  Connection& connection = connections_[fd];
  connection.serial = ++last_serial_;
  connection.cookie = identity->cookie;
  connection.listener = listener;
  connection.keys = keys;
  connection.address = address;
  unheard_[connection.serial] = fd;
  // Each of these makes room for one. Whom it hits has had more time for a handshake than anybody
  // else, so whoever is honest gets through beside a stranger at the limit.
  if (too_many) {
    if (!EndOldestUnheard(PeerLimit::kConnectionsOfAddress, address)) {
      End(connections_.find(fd), PeerLimit::kConnectionsOfAddress);
    }
  } else if (connections_.size() > limits_.connections_max) {
    if (!EndOldestUnheard(PeerLimit::kConnections, "")) {
      End(connections_.find(fd), PeerLimit::kConnections);
    }
  } else if (unheard_.size() > limits_.unheard_max) {
    EndOldestUnheard(PeerLimit::kUnheard, "");
  } else if (too_fast) {
    EndOldestUnheard(PeerLimit::kOpenedPerSecond, address);
  }
}

bool ConnectionLimits::EndOldestUnheard(PeerLimit why, const std::string& address) {
  for (auto next = unheard_.begin(); next != unheard_.end();) {
    const auto which = connections_.find((next++)->second);
    Connection& connection = which->second;
    if (!address.empty() && connection.address != address) continue;
    const bool here = Count(which->first, connection);
    if (here && connection.heard) continue;  // It was let in since we looked last.
    if (here) {
      End(which, why);
    } else {
      Forget(which);
    }
    return true;
  }
  return false;
}

bool ConnectionLimits::Count(int fd, Connection& connection) {
  const std::optional<OpenConnections::Bytes> bytes = open_.BytesOf(fd, connection.cookie);
  if (!bytes) return false;
  connection.received = bytes->received;
  connection.handed_out = std::min(connection.handed_out, connection.received);
  const bool let_in = connection.keys ? bytes->acknowledged > kLetInBytes
                                      : connection.held() > limits_.unheard_bytes_max;
  if (let_in) Hear(connection);
  return true;
}

void ConnectionLimits::Hear(Connection& connection) {
  if (!connection.heard) unheard_.erase(connection.serial);
  connection.heard = true;
}

bool ConnectionLimits::OnMessage(const Arrival& arrival, bool refused, int64_t now_ms) {
  const auto which = connections_.find(arrival.connection);
  if (which == connections_.end()) return false;
  Connection& connection = which->second;
  if (!arrival.address.empty() && connection.address != kOverIpc &&
      connection.address != arrival.address) {
    return true;
  }
  connection.handed_out += arrival.wire_bytes;
  if (connection.frames.Exceeded(limits_.frames_per_second_max, now_ms)) {
    End(which, PeerLimit::kFramesPerSecond);
  } else if (!refused) {
    Hear(connection);
  } else if (connection.refused.Exceeded(limits_.refused_per_second_max, now_ms)) {
    End(which, PeerLimit::kRefusedPerSecond);
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
    } else if (connection.keys && !connection.heard &&
               connection.received > limits_.unheard_bytes_max) {
      End(which, PeerLimit::kUnheardBytes);
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
  const Connection& connection = which->second;
  ++ended_[why];
  if (told_.size() < kToldMax && told_.emplace(connection.address, why).second) {
    LOG(WARNING) << "ended a connection from " << connection.address << ": the limit on "
                 << WordOf(why) << "; further ones are counted";
  }
  open_.End(which->first, connection.cookie);
  Forget(which);
}

void ConnectionLimits::Forget(ByDescriptor::iterator which) {
  const Connection& connection = which->second;
  unheard_.erase(connection.serial);
  const auto address = addresses_.find(connection.address);
  if (address != addresses_.end() && address->second.connections > 0) {
    --address->second.connections;
  }
  connections_.erase(which);
}

void ConnectionLimits::ForgetListener(uint64_t listener) {
  for (auto next = connections_.begin(); next != connections_.end();) {
    const auto which = next++;
    if (which->second.listener == listener) Forget(which);
  }
}

}  // namespace hdps
