// Answers requests for predictions and for rows of tables that come as messages over ZeroMQ.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/net/transport.h"
#include "common/process/connections.h"
#include "tools/serve/front/request_queue.h"
#include "tools/serve/served_model.h"
#include "tools/serve/watch/answer_watch.h"

namespace hdps {

struct MessageFrontOptions {
  std::string listen;       // tcp://HOST:PORT or ipc://PATH; --listen.
  Connections connections;  // With keys: those of the role `serving`.
};

// Listens for PredictRequest, and answers from the queue's threads.
//
// Invariant: the thread that moves frames neither decodes nor scores. Requests wait in the queue,
// and one for which there is no place is refused at once. Requests that wait have at most 256 MiB.
class MessageFront {
 public:
  // Errors: kInvalidArgument names what is wrong with the address. Requires: models, watches and
  // queue outlive the result.
  static Result<std::unique_ptr<MessageFront>> Listen(const MessageFrontOptions& options,
                                                      std::vector<WatchedModel> models,
                                                      RequestQueue& queue);
  // The same over a transport whose own number is kServingPeer.
  static Result<std::unique_ptr<MessageFront>> ListenOver(std::unique_ptr<Transport> transport,
                                                          const std::string& listen,
                                                          std::vector<WatchedModel> models,
                                                          RequestQueue& queue);
  // Stops.
  virtual ~MessageFront() = default;

  // Returns the address that others dial.
  virtual const std::string& address() const = 0;
  // Refuses what comes from now on, and returns when all that was taken is answered. The queue must
  // go on meanwhile. Stopping twice changes nothing.
  virtual void Stop() = 0;
};

}  // namespace hdps
