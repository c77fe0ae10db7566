// What the system says of connections that libzmq has accepted, and how one of them is ended.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace hdps {

// The address of all who come over ipc.
inline constexpr char kOverIpc[] = "ipc";

// The number that the system gives to this socket alone; none where `fd` is no socket.
std::optional<uint64_t> CookieOf(int fd);

// libzmq names connections by file descriptors, which are its own: by the time that we look, it may
// have closed one and the number may be another's. So each has an identity that never comes again.
class OpenConnections {
 public:
  struct Identity {
    uint64_t cookie = 0;
    std::string address;  // Of the other end: its host, or kOverIpc.
  };
  virtual ~OpenConnections() = default;
  // Of what was accepted where libzmq listens at `endpoint`, "tcp://HOST:PORT" or "ipc://PATH",
  // also where it has ended by its parts since; of anything else none.
  virtual std::optional<Identity> Identify(int fd, const std::string& endpoint) = 0;
  // The bytes that the kernel has received of it, whether or not libzmq has read them yet. None
  // where the connection is gone; 0 over ipc, where nobody counts.
  virtual std::optional<uint64_t> ReceivedBy(int fd, uint64_t cookie) = 0;
  // Whether it ended by itself, while a message of too many parts arrived by it; true once.
  virtual bool TakeEndedByParts(uint64_t cookie) = 0;
  // Both ends see an end of stream; nothing happens where the connection is gone.
  virtual void End(int fd, uint64_t cookie) = 0;
};

// Of a connection that is there: who it is, and how the endpoint ends where it was accepted,
// ":PORT" or "//PATH". None of anything else.
struct ConnectionEnds {
  OpenConnections::Identity identity;
  std::string accepted_at;
};
std::optional<ConnectionEnds> EndsOf(int fd);

// Those of this process.
class SystemConnections : public OpenConnections {
 public:
  std::optional<Identity> Identify(int fd, const std::string& endpoint) override;
  std::optional<uint64_t> ReceivedBy(int fd, uint64_t cookie) override;
  bool TakeEndedByParts(uint64_t cookie) override;
  void End(int fd, uint64_t cookie) override;
};

}  // namespace hdps
