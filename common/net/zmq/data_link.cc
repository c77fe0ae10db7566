// Dials a listener's data port once there is a session.
#include "common/net/zmq/data_link.h"

#include <glog/logging.h>

#include "common/net/zmq/parts.h"

namespace hdps {
namespace {

constexpr int64_t kAnswersWithinMs = 5000;

}  // namespace

bool DataLink::Send(const Frame& frame, const std::vector<SharedBlock>& blocks) {
  if (connection_) {
    std::vector<zmq::message_t> parts = PartsOf(frame, blocks);
    connection_->ends.Encrypt(&parts);
    return SendMessage(socket(), parts);
  }
  if (waiting_.size() >= options_.queue_frames_max) return false;
  waiting_.push_back({frame, blocks});
  return true;
}

size_t DataLink::OnAnswer(const Frame& frame) {
  const std::optional<SessionGrant> grant = GrantIn(frame);
  // A listener repeats its grant whenever the connection over CURVE is a new one.
  if (grant && connection_ && connection_->session == grant->session) return 0;
  if (grant && begun_.contains(grant->session)) {
    LOG(ERROR) << endpoint_
               << " grants a session for data that has ended; it is not taken up again";
    return 0;
  }
  DropUnsent();
  connection_.reset();
  if (!grant) return 0;
  try {
    WatchedSocket watched(context_, NewDataDialer(context_, options_), true);
    watched.socket().connect(endpoint_);
    CHECK(begun_.insert(grant->session).second) << "a session would begin with counters it had";
    connection_.emplace(
        Connection{grant->session, DataSession::OfDialer(*grant), std::move(watched)});
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

void DataLink::Maintain(int64_t now_ms) {
  if (!connection_) return;
  connection_->answered =
      connection_->watched.TakeHandshakes().finished > 0 || connection_->answered;
  if (!connection_->since_ms) connection_->since_ms = now_ms;
  const bool silent = !connection_->answered && now_ms >= *connection_->since_ms + kAnswersWithinMs;
  if (!silent || std::exchange(connection_->told, true)) return;
  LOG(ERROR) << endpoint_ << ", the port for data of a server, does not answer, although its other "
             << "port does; a firewall has to let members in at both";
}

void DataLink::DropUnsent() {
  if (connection_) socket().set(zmq::sockopt::linger, 0);
}

}  // namespace hdps
