// The interface through which frames leave and enter a process.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/net/frame.h"
#include "common/net/keys/key_folder.h"
#include "common/net/node.h"
#include "common/net/peer_limits.h"
#include "common/net/peer_name.h"
#include "common/net/section_allocator.h"

namespace hdps {

struct TransportOptions {
  PeerName self;          // Our name to the others; unique for each incarnation.
  bool insecure = false;  // Allow addresses beyond loopback without keys.
  // If set, every connection over ZeroMQ is authenticated and encrypted (CURVE), and only holders
  // of keys in the list are heard. Null means no keys.
  std::shared_ptr<KeyFolder> keys = nullptr;
  // Opens a data port beside each tcp port; only with keys. Frames at the data port are encrypted
  // with AES-GCM or ChaCha20-Poly1305 (zmq/frame_cipher.h) under sessions that are agreed on over
  // CURVE. The address that Listen() returns names the port, and peers that dial it use it.
  bool data_port = false;
  // Decides, with keys, if the holder of a key with this role may send `frame`; the error says why
  // not. If empty, all may send everything.
  std::function<Status(KeyRole role, const Frame& frame)> may_send = nullptr;
  uint32_t queue_frames_max = 1024;  // Frames that wait for one peer; more are dropped.
  // Longest part of a message that is accepted from anybody; a longer one ends the connection.
  uint64_t part_bytes_max = kFrameBytesMax;
  PeerLimits limits = {};  // Limits on connections to us.
  // Limits the share of time for guests (GuestShare); false where nobody but guests asks.
  bool guests_rest = true;
  // Memory shared with each peer on this machine for frames in transit to it; 0 means that none is
  // shared. Only as much is committed as was ever in transit at once.
  size_t shared_bytes_per_peer = size_t{128} << 20;
};

struct TransportCounters {
  uint64_t frames_sent = 0, frames_received = 0;
  uint64_t bytes_sent = 0, bytes_received = 0;
  uint64_t frames_dropped = 0;  // Unknown peer, or its queue was full; the sender retries.
  uint64_t frames_refused = 0;  // Arrived, but failed CheckFrame or was not allowed.
  uint64_t bytes_shared = 0;    // Part of bytes_sent that went through shared memory.
  // Connections to us, with keys: accepted, refused by the list, and ended before the handshake was
  // complete.
  uint64_t connections_admitted = 0, connections_refused = 0, handshakes_failed = 0;
  EndedConnections ended;  // Connections to us that we ended.
};

// Moves frames between peers: at most once, in order between two peers, never blocking the sender.
// A peer that we dialed is reached through that connection. A peer that dialed us is answered on
// the connection that it came by, so only servers and the scheduler need to listen. A caller is
// refused if it claims a reserved number (the scheduler's), ours, or that of a peer that we dialed.
// Over ZeroMQ it must also prove that it owns the number.
//
// Belongs to one loop thread; other threads may only call Wake().
class Transport {
 public:
  virtual ~Transport() = default;
  // Listens on "tcp://host:port" (port 0 or * picks one), "ipc://path" or "inproc://name" and
  // returns the address that others should dial. With a data port, tcp has two ports,
  // "tcp://host:port+data_port"; the second is the one after the first unless the address names it.
  // Errors: kInvalidArgument if the address is malformed, taken, or beyond loopback without keys or
  // `insecure`; the message says what would be right.
  virtual Result<std::string> Listen(const std::string& address) = 0;
  // Dials `peer`. Repeated calls with the same address change nothing; another address replaces the
  // connection.
  virtual Status Connect(PeerId peer, const std::string& address) = 0;
  // Ends the connection that dialed `peer`, which may be dead without a sign of it. Frames that
  // wait there and memory that was shared are dropped. Connect() may dial again, and
  // proves our number again.
  virtual void HangUp(PeerId peer) = 0;
  virtual void Send(PeerId to, Frame frame) = 0;
  // Waits up to `timeout_ms` for a frame that passed CheckFrame. Returns false if none came, or on
  // Wake().
  virtual bool Receive(int64_t timeout_ms, PeerId* from, Frame* frame) = 0;
  // Returns the allocator of sections that are sent without a copy, valid as long as the transport;
  // null if there is none.
  virtual SectionAllocator* sections() { return nullptr; }
  virtual void Wake() = 0;  // Ends a waiting Receive(); from any thread.
  virtual TransportCounters counters() const = 0;
};

// Returns a transport over ZeroMQ, for tcp and ipc. Between processes of one user on one machine,
// large sections go through shared memory and are read in place. A section that the receiver keeps
// occupies the sender's shared memory; while that is full, sections travel in their frames as they
// do between machines. A frame of another protocol version is not answered; the log names both
// versions.
std::unique_ptr<Transport> NewZmqTransport(const TransportOptions& options);

// Connects the nodes of one process. Each transport belongs to its node's thread.
class InprocHub;
std::shared_ptr<InprocHub> NewInprocHub();
std::unique_ptr<Transport> NewInprocTransport(std::shared_ptr<InprocHub> hub,
                                              const TransportOptions& options);

// Errors: kInvalidArgument if `address` is malformed, or if it is beyond loopback and ipc and
// `may_leave` is false. `may_leave` says that there are keys, or that the operator wants none.
Status CheckAddress(const std::string& address, bool may_leave);

}  // namespace hdps
