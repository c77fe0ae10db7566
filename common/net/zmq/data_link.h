// The dialing end of a session: its connection, and the frames that wait for the session.
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

// Sends and receives encrypted frames at a listener's data port.
//
// Invariant: frames leave in the order in which they were given, under one session at a time. No
// session begins twice, because its counters would repeat under the same keys. At most
// `queue_frames_max` frames wait for a session.
class DataLink {
 public:
  DataLink(zmq::context_t& context, const TransportOptions& options, std::string endpoint)
      : context_(context), options_(options), endpoint_(std::move(endpoint)) {}

  // Sends a frame whose header is complete. Returns false if there is no room.
  bool Send(const Frame& frame, const std::vector<SharedBlock>& blocks);
  // Takes the listener's answer, which came over CURVE. Returns the number of waiting frames that
  // were dropped because there was no room.
  size_t OnAnswer(const Frame& frame);
  bool has_session() const { return connection_.has_value(); }
  // Requires: has_session().
  zmq::socket_t& socket() { return connection_->watched.socket(); }
  // Verifies and decrypts a message that came from socket(), and removes its tag. Returns false if
  // it does not belong to this session.
  bool Decrypt(std::vector<zmq::message_t>* parts) { return connection_->ends.Decrypt(parts, 0); }
  // Logs once if the data port does not answer although the first port did.
  void Maintain(int64_t now_ms);
  // Makes closing drop unsent frames instead of waiting for them.
  void DropUnsent();

 private:
  struct Connection {
    uint64_t session;
    DataSession ends;
    WatchedSocket watched;
    std::optional<int64_t> since_ms = {};  // Time of the first Maintain().
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
  std::set<uint64_t> begun_;  // Ids of the current session and all before it.
  std::deque<Waiting> waiting_;
};

}  // namespace hdps
