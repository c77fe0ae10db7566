// Lets connections wait for answers that other threads give.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_set>

#include "common/base/thread_annotations.h"
#include "common/http/http_server.h"
#include "common/http/own_answers.h"

struct MHD_Connection;

namespace hdps {

// The requests of one server whose answers may come later. Whoever has a reply to give keeps it
// alive, so the server may go before.
//
// Invariant: a connection is suspended exactly while its request is in waiting_, and none is after
// Close(). The library may end a connection at any time but while it is suspended.
class LateAnswers : public std::enable_shared_from_this<LateAnswers> {
 public:
  // One request. The lock of its LateAnswers guards it.
  struct Request {
    bool answered = false;
    std::optional<HttpAnswer> answer;     // Until the connection takes it.
    MHD_Connection* suspended = nullptr;  // Waits for the answer.
  };

  explicit LateAnswers(const OwnAnswers& own) : own_(own) {}

  // These are for the thread that serves. A request is at hand from Begin() to End().
  std::shared_ptr<Request> Begin();
  void End();
  // Returns the reply to the request. The first answer counts; if the last copy of the reply goes
  // without one, the answer is 500.
  HttpReply ReplyTo(const std::shared_ptr<Request>& request);
  // Returns the answer if it is there. Otherwise suspends the connection until it is, and the
  // library then calls for the request again.
  std::optional<HttpAnswer> AnswerOrSuspend(Request* request, MHD_Connection* connection);

  // Waits until no request is at hand. Returns false after so long.
  bool AwaitNone(int64_t timeout_ms);
  // Answers those that wait and those to come with 503; replies are dropped from now on.
  void Close();

 private:
  void Give(Request* request, HttpAnswer answer);
  void Put(Request* request, HttpAnswer answer) HDPS_REQUIRES(mutex_);
  HttpAnswer Ending() const { return own_.SayLater("this server ends"); }

  const OwnAnswers own_;
  Mutex mutex_;
  size_t at_hand_ HDPS_GUARDED_BY(mutex_) = 0;
  std::unordered_set<Request*> waiting_ HDPS_GUARDED_BY(mutex_);
  bool closed_ HDPS_GUARDED_BY(mutex_) = false;
};

}  // namespace hdps
