// Makes one reply for each kind of request that has one.
#include "server/groups/refusal.h"

#include "common/protocol/message_frames.h"
#include "common/protocol/message_kind.h"
#include "common/protocol/row_messages.h"

namespace hdps {

std::optional<Frame> RefusalOf(const Frame& request, const Status& why, Clock finished) {
  Frame frame;
  switch (static_cast<MessageKind>(request.header.kind)) {
    case MessageKind::kPullRequest: {
      PullReply reply;
      reply.code = why.code();
      reply.message = why.message();
      reply.min_clock = finished;
      frame = EncodeMessage(reply);
      break;
    }
    case MessageKind::kPushRequest: {
      PushAck ack;
      ack.code = why.code();
      ack.message = why.message();
      PushRequest push;
      if (DecodeMessage(request, &push).ok()) ack.sequence = push.sequence;
      frame = EncodeMessage(ack);
      break;
    }
    case MessageKind::kStoreRequest: {
      StoreAck ack;
      ack.code = why.code();
      ack.message = why.message();
      frame = EncodeMessage(ack);
      break;
    }
    case MessageKind::kSquaresRequest: {
      SquaresReply reply;
      reply.code = why.code();
      reply.message = why.message();
      frame = EncodeMessage(reply);
      break;
    }
    default:
      return std::nullopt;
  }
  frame.header.request_id = request.header.request_id;
  return frame;
}

}  // namespace hdps
