// Dials the data port of a listener once there is a session.
#include "common/net/zmq/data_link.h"

#include <glog/logging.h>

#include "common/net/zmq/parts.h"

namespace hdps {

bool DataLink::Send(const Frame& frame, const std::vector<SharedBlock>& blocks) {
  if (connection_) {
    std::vector<zmq::message_t> parts = PartsOf(frame, blocks);
    connection_->ends.Seal(&parts);
    return SendMessage(connection_->socket, parts);
  }
  if (waiting_.size() >= options_.queue_frames_max) return false;
  waiting_.push_back({frame, blocks});
  return true;
}

size_t DataLink::OnAnswer(const Frame& frame) {
  const std::optional<SessionGrant> grant = GrantIn(frame);
  // A listener answers again, with what it has, whenever the connection over CURVE is a new one.
  if (grant && connection_ && connection_->session == grant->session) return 0;
  DropUnsent();
  connection_.reset();
  if (!grant) return 0;
  try {
    zmq::socket_t socket = NewDataDialer(context_, options_);
    socket.connect(endpoint_);
    connection_.emplace(Connection{
        grant->session, DataSession(grant->session, grant->to_listener, grant->to_dialer),
        std::move(socket)});
  } catch (const zmq::error_t& error) {
    LOG(ERROR) << "dialing " << endpoint_ << ": " << error.what();
    return 0;
  }
  size_t dropped = 0;
  for (const Waiting& waiting : std::exchange(waiting_, {})) {
    dropped += Send(waiting.frame, waiting.blocks) ? 0 : 1;
  }
  return dropped;
}

void DataLink::DropUnsent() {
  if (connection_) connection_->socket.set(zmq::sockopt::linger, 0);
}

}  // namespace hdps
