// The door through which frames leave and enter a process.
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
  PeerName self;          // Who we are to the others; unique for each incarnation.
  bool insecure = false;  // Allow addresses beyond loopback without keys.
  // With them every connection over ZeroMQ is authenticated and encrypted (CURVE), and only holders
  // of keys in their list are heard. Null: none.
  std::shared_ptr<KeyFolder> keys = nullptr;
  // With keys, of what listens here over tcp: a second port is opened, where frames travel sealed
  // (zmq/frame_seal.h) under sessions that are set up over CURVE. The address that Listen() returns
  // names it, and whoever dials goes by that address.
  bool data_port = false;
  // With keys: ok when the holder of a key with this role may send that frame, else why not. Empty:
  // each may send everything.
  std::function<Status(KeyRole role, const Frame& frame)> may_send = nullptr;
  uint32_t queue_frames_max = 1024;  // Frames waiting for one peer before more are dropped.
  // No part of a message, from whomever, may be longer: its connection ends.
  uint64_t part_bytes_max = kFrameBytesMax;
  PeerLimits limits = {};  // Of those who dial us.
  // Memory shared with each peer of this machine for what is on its way to it; 0 = none is shared.
  // It takes only as much as was ever on its way at once.
  size_t shared_bytes_per_peer = size_t{128} << 20;
};

struct TransportCounters {
  uint64_t frames_sent = 0, frames_received = 0;
  uint64_t bytes_sent = 0, bytes_received = 0;
  uint64_t frames_dropped = 0;  // Unknown peer or its queue full: the sender's retry mends it.
  uint64_t frames_refused = 0;  // Arrived and failed CheckFrame, or the sender may not send it.
  uint64_t bytes_shared = 0;    // Of bytes_sent: through memory that the peer sees too.
  // With keys, of connections to us: let in, refused by the list, and not even properly opened.
  uint64_t connections_admitted = 0, connections_refused = 0, handshakes_failed = 0;
  EndedConnections ended;  // By us, of those to us.
};

// Moves frames between peers: at most once, in order between two peers, never blocking the sender.
// A peer that was dialed is reached through that connection; a peer that dialed us is answered on
// the connection it came by, so only servers and the scheduler need to listen. Nobody is heard who
// dials us under a reserved number (the scheduler's), ours, or that of a peer that we dialed. Over
// ZeroMQ nobody is who does not prove that the number is his own.
//
// Belongs to one loop thread; only Wake() may be called from others.
class Transport {
 public:
  virtual ~Transport() = default;
  // Listens on "tcp://host:port" (port 0 or * picks one), "ipc://path" or "inproc://name" and
  // returns the address as others should dial it; with a port for data tcp has two ports,
  // "tcp://host:port+data_port", of which the second is by itself the one after the first.
  // kInvalidArgument when the address is malformed, beyond loopback without keys or `insecure`, or
  // taken; the message says what would be right.
  virtual Result<std::string> Listen(const std::string& address) = 0;
  // Repeated calls with the same address change nothing; another address replaces the connection.
  virtual Status Connect(PeerId peer, const std::string& address) = 0;
  // Ends the connection that dialed `peer`, which may be dead without anybody having said so; what
  // waited there, or was shared, is dropped. Connect() dials anew, and shows that it is still us.
  virtual void HangUp(PeerId peer) = 0;
  virtual void Send(PeerId to, Frame frame) = 0;
  // Waits up to `timeout_ms` for a frame that passed CheckFrame. False when none came or on Wake().
  virtual bool Receive(int64_t timeout_ms, PeerId* from, Frame* frame) = 0;
  // Where sections are best made, as long as the transport lives; null: anywhere.
  virtual SectionAllocator* sections() { return nullptr; }
  virtual void Wake() = 0;  // Ends a Receive() that waits; from any thread.
  virtual TransportCounters counters() const = 0;
};

// Over ZeroMQ: tcp and ipc. Between processes of one user on one machine large sections go through
// shared memory and are read in place; whoever keeps one keeps its place in the sender's share, and
// when that is full, sections go with their frames as they do between machines. A frame of another
// protocol version is answered by nothing but a line in the log naming both versions.
std::unique_ptr<Transport> NewZmqTransport(const TransportOptions& options);

// Connects the nodes of one process; each transport belongs to its node's thread.
class InprocHub;
std::shared_ptr<InprocHub> NewInprocHub();
std::unique_ptr<Transport> NewInprocTransport(std::shared_ptr<InprocHub> hub,
                                              const TransportOptions& options);

// kInvalidArgument unless `address` is well formed and, without `may_leave`, on loopback or ipc:
// there have to be keys, or the operator's word that none are wanted.
Status CheckAddress(const std::string& address, bool may_leave);

}  // namespace hdps
