// Serves models until it is told to stop: loads them, listens, and ends without losing a request.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"
#include "common/process/http_flags.h"
#include "tools/serve/messages/message_front.h"
#include "tools/serve/versions/served_checkpoint.h"
#include "tools/serve/watch/request_log.h"

namespace hdps {

struct ServingOptions {
  std::vector<ServedOptions> models;  // At least one.
  int threads = 1;                    // That read, score and write.
  int64_t batch_wait_us = 0;          // As for NewRequestQueue().
  HttpFlags http;                     // An empty address: no HTTP.
  bool open = false;                  // Questions over HTTP are answered without the token.
  MessageFrontOptions messages;       // An empty address: no ZeroMQ.
  RequestLogOptions log;              // An empty path: none. Of several models each has PATH.NAME.
};

// Loads the models, tells on stderr where they answer, and serves until `stop` is set. Requests at
// hand are answered then, and it returns within 10 s. Errors: those of ServedCheckpoint::Open(),
// ServeHttp(), MessageFront::Listen() and RequestLog::Open(), and kInvalidArgument if two models
// have one name, or a name cannot stand in a path.
Status RunServing(const ServingOptions& options, FileSystem& files, MonotonicClock& clock,
                  const std::atomic<bool>& stop);

// kInvalidArgument unless the name can be that of a served model; `flag` says where it is from.
Status CheckModelName(const std::string& flag, const std::string& name);

}  // namespace hdps
