// Speaks ZMTP 3.0 by hand over a plain socket, so that a test can also send invalid bytes.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "common/net/callers.h"
#include "common/net/frame.h"
#include "tests/common/net/named_peers.h"

namespace hdps {

// A raw connection to a listener.
//
// Invariant: it is connected to one port of 127.0.0.1 until destroyed, from the local address
// `from`.
class RawPeer {
 public:
  explicit RawPeer(const std::string& tcp_address, const char* from = "127.0.0.1")
      : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in name = {};
    name.sin_family = AF_INET;
    inet_pton(AF_INET, from, &name.sin_addr);
    EXPECT_EQ(bind(socket_, reinterpret_cast<const sockaddr*>(&name), sizeof(name)), 0) << from;
    const int port = std::stoi(tcp_address.substr(tcp_address.rfind(':') + 1));
    name.sin_port = htons(static_cast<uint16_t>(port));
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(socket_, reinterpret_cast<const sockaddr*>(&name), sizeof(name)), 0);
  }
  ~RawPeer() {
    if (socket_ >= 0) close(socket_);
  }
  RawPeer(RawPeer&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}
  RawPeer(const RawPeer&) = delete;
  RawPeer& operator=(const RawPeer&) = delete;

  void Write(const std::string& bytes) const {
    // The other side may have closed the connection already.
    [[maybe_unused]] const ssize_t n = send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }

  // Returns whether the other side has closed the connection; discards what it sent.
  bool Ended() const {
    char bytes[4096];
    ssize_t n = 1;
    while (n > 0) n = recv(socket_, bytes, sizeof(bytes), MSG_DONTWAIT);
    return n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
  }

  int socket() const { return socket_; }

  // Greets as a DEALER with this routing id (rfc.zeromq.org/spec/23).
  void Greet(const std::string& routing_id) const {
    std::string greeting("\xff\0\0\0\0\0\0\0\x01\x7f\x03\0NULL", 16);
    greeting.resize(64, '\0');
    Write(greeting);
    std::string ready("\x05READY", 6);
    ready += Property("Socket-Type", "DEALER") + Property("Identity", routing_id);
    Write(std::string("\x04") + static_cast<char>(ready.size()) + ready);
  }
  // Waits for the other side's greeting and READY; only then may messages follow.
  void AwaitGreeting() const {
    Read(64);
    Read(static_cast<uint8_t>(Read(2)[1]));
  }

  // Sends the header of a part or command of `size` bytes; the bytes need not follow.
  void Announce(uint64_t size, bool more, bool command = false) const {
    std::string part;
    // 2: the length has eight bytes.
    part += static_cast<char>((more ? 1 : 0) | 2 | (command ? 4 : 0));
    for (int shift = 56; shift >= 0; shift -= 8) part += static_cast<char>(size >> shift);
    Write(part);
  }
  void SendPart(const void* data, size_t size, bool more) const {
    Announce(size, more);
    Write(std::string(static_cast<const char*>(data), size));
  }
  void SendFrame(const Frame& frame) const {
    SendPart(&frame.header, sizeof(frame.header), true);
    SendPart(frame.envelope.data(), frame.envelope.size(), !frame.sections.empty());
    for (size_t i = 0; i < frame.sections.size(); ++i) {
      const Buffer& section = frame.sections[i];
      SendPart(section.data(), section.size(), i + 1 < frame.sections.size());
    }
  }

 private:
  static std::string Property(const std::string& name, const std::string& value) {
    std::string property;
    property += static_cast<char>(name.size());
    property += name;
    property += std::string("\0\0\0", 3) + static_cast<char>(value.size()) + value;
    return property;
  }

  std::string Read(size_t size) const {
    std::string bytes(size, '\0');
    EXPECT_EQ(recv(socket_, bytes.data(), size, MSG_WAITALL), static_cast<ssize_t>(size));
    return bytes;
  }

  int socket_;
};

inline std::string TextOf(const CallerId& id) {
  const CallerIdBytes bytes = BytesOf(id);
  return std::string(bytes.data(), bytes.size());
}
// Returns the routing id of a peer's first connection, if the peer does not know the listener's
// peer id. A peer that no test has named proves nothing.
inline std::string RoutingIdFor(PeerId peer) { return TextOf(CallerIdOf(NameOf(peer), {}, 1)); }
// Returns the routing id of another process that claims to be `peer`, with its own key and proof.
inline std::string RoutingIdOfAThief(PeerId peer, PeerId listener = {}, uint64_t dial = 1) {
  CallerId id = CallerIdOf(NewPeerName(), listener, dial);
  id.peer = peer;
  return TextOf(id);
}

}  // namespace hdps
