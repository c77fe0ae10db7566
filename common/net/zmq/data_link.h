// The dialing end of one session: its connection, and frames that wait for it.
#pragma once

#include <deque>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>
#include <zmq.hpp>

#include "common/net/shared/shared_memory_links.h"
#include "common/net/transport.h"
#include "common/net/zmq/data_session.h"
#include "common/net/zmq/watched_socket.h"

namespace hdps {

// Invariant: frames leave in the order in which they were given, all of them under one session at a
// time, and no session begins twice, as its counters would begin again under the same keys; at most
// `queue_frames_max` frames wait for one.
class DataLink {
 public:
  DataLink(zmq::context_t& context, const TransportOptions& options, std::string endpoint)
      : context_(context), options_(options), endpoint_(std::move(endpoint)) {}

  // The frame's header is filled in. False: there is no room.
  bool Send(const Frame& frame, const std::vector<SharedBlock>& blocks);
  // The listener has answered, over CURVE. Returns how many of the frames that waited there was no
  // room for.
  size_t OnAnswer(const Frame& frame);
  bool has_session() const { return connection_.has_value(); }
  // Requires: has_session().
  zmq::socket_t& socket() { return connection_->watched.socket(); }
  // Decrypts a message that came by socket(), and takes off its tag. False: it is none of this
  // session.
  bool Open(std::vector<zmq::message_t>* parts) { return connection_->ends.Open(parts, 0); }
  // Says once where the port for data does not answer, although the other one did.
  void Tend(int64_t now_ms);
  // Closing will not wait for what is unsent.
  void DropUnsent();

 private:
  struct Connection {
    uint64_t session;
    DataSession ends;
    WatchedSocket watched;
    std::optional<int64_t> since_ms = {};  // Of the first Tend().
    bool answered = false, told = false;
  };
  struct Waiting {
    Frame frame;
    std::vector<SharedBlock> blocks;
  };

  zmq::context_t& context_;
  const TransportOptions& options_;
  const std::string endpoint_;
  std::optional<Connection> connection_;
  std::set<uint64_t> begun_;  // Sessions, this one and those before.
  std::deque<Waiting> waiting_;
};

}  // namespace hdps
