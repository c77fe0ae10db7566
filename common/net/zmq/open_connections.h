// Asks the system about connections that libzmq has accepted, and ends one of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace hdps {

// The address of every peer that connects over ipc.
inline constexpr char kOverIpc[] = "ipc";

// Returns the number that the system gives to this socket alone; none if `fd` is not a socket.
std::optional<uint64_t> CookieOf(int fd);

// Names connections beyond doubt. libzmq names them by its own file descriptors, and by the time we
// look, it may have closed one and the number may belong to another. So each connection has an
// identity that is never reused.
class OpenConnections {
 public:
  struct Identity {
    uint64_t cookie = 0;
    std::string address;  // Host of the other end, or kOverIpc.
  };
  virtual ~OpenConnections() = default;
  // Returns the identity of a connection that was accepted at libzmq's endpoint "tcp://HOST:PORT"
  // or "ipc://PATH", even if it was ended since for its parts. Returns none for everything else.
  virtual std::optional<Identity> Identify(int fd, const std::string& endpoint) = 0;
  // Returns the bytes that the kernel has received on it, even if libzmq has not read them yet.
  // Returns none if the connection is gone, and 0 over ipc, where nothing counts them.
  virtual std::optional<uint64_t> ReceivedBy(int fd, uint64_t cookie) = 0;
  // Is true, once, if the connection was ended while a message of too many parts arrived on it.
  virtual bool TakeEndedByParts(uint64_t cookie) = 0;
  // Shuts the connection down, so both ends see an end of stream. Does nothing if it is gone.
  virtual void End(int fd, uint64_t cookie) = 0;
};

// Identity of an open connection, and the end of the endpoint that accepted it: ":PORT" or
// "//PATH".
struct ConnectionEnds {
  OpenConnections::Identity identity;
  std::string accepted_at;
};
std::optional<ConnectionEnds> EndsOf(int fd);

// The connections of this process.
class SystemConnections : public OpenConnections {
 public:
  std::optional<Identity> Identify(int fd, const std::string& endpoint) override;
  std::optional<uint64_t> ReceivedBy(int fd, uint64_t cookie) override;
  bool TakeEndedByParts(uint64_t cookie) override;
  void End(int fd, uint64_t cookie) override;
};

}  // namespace hdps
