// What the system says of connections that libzmq has accepted, and how one of them is ended.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace hdps {

// The address of all who come over ipc.
inline constexpr char kOverIpc[] = "ipc";

// libzmq names connections by file descriptors, which are its own: by the time that we look, it may
// have closed one and the number may be another's. So each has an identity that never comes again.
class OpenConnections {
 public:
  struct Identity {
    uint64_t cookie = 0;
    std::string address;  // Of the other end: its host, or kOverIpc.
  };
  struct Bytes {
    uint64_t received = 0;      // By the kernel, whether or not libzmq has read them yet.
    uint64_t acknowledged = 0;  // By the other end, of what it was sent.
  };
  virtual ~OpenConnections() = default;
  // Of what was accepted where libzmq listens at `endpoint`, "tcp://HOST:PORT" or "ipc://PATH"; of
  // anything else none.
  virtual std::optional<Identity> Identify(int fd, const std::string& endpoint) = 0;
  // None where the connection is gone; zeros over ipc, where nobody counts.
  virtual std::optional<Bytes> BytesOf(int fd, uint64_t cookie) = 0;
  // Both ends see an end of stream; nothing happens where the connection is gone.
  virtual void End(int fd, uint64_t cookie) = 0;
};

// Those of this process.
class SystemConnections : public OpenConnections {
 public:
  std::optional<Identity> Identify(int fd, const std::string& endpoint) override;
  std::optional<Bytes> BytesOf(int fd, uint64_t cookie) override;
  void End(int fd, uint64_t cookie) override;
};

}  // namespace hdps
