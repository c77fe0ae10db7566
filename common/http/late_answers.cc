// Suspends connections and resumes them when their answers are there.
#include "common/http/late_answers.h"

#include <microhttpd.h>

#include <utility>

#include "common/platform/monotonic_clock.h"
#include "common/platform/threads/pause.h"

namespace hdps {

std::shared_ptr<LateAnswers::Request> LateAnswers::Begin() {
  const MutexLock lock(mutex_);
  ++at_hand_;
  return std::make_shared<Request>();
}

void LateAnswers::End() {
  const MutexLock lock(mutex_);
  --at_hand_;
}

HttpReply LateAnswers::ReplyTo(const std::shared_ptr<Request>& request) {
  // All copies of the reply share this pointer, whose end is that of the last one.
  const std::shared_ptr<Request> of_reply(
      request.get(), [all = shared_from_this(), request](Request* unanswered) {
        all->Give(unanswered, all->own_.Say(500, "the request was given up without an answer"));
      });
  return [all = shared_from_this(), of_reply](HttpAnswer answer) {
    all->Give(of_reply.get(), std::move(answer));
  };
}

std::optional<HttpAnswer> LateAnswers::AnswerOrSuspend(Request* request,
                                                       MHD_Connection* connection) {
  const MutexLock lock(mutex_);
  if (closed_) Put(request, Ending());
  if (request->answered) return std::exchange(request->answer, std::nullopt);
  request->suspended = connection;
  waiting_.insert(request);
  MHD_suspend_connection(connection);
  return std::nullopt;
}

bool LateAnswers::AwaitNone(int64_t timeout_ms) {
  constexpr int64_t kLookMs = 5;
  const std::unique_ptr<MonotonicClock> clock = NewSystemClock();
  const int64_t deadline_ms = clock->NowMs() + timeout_ms;
  Pause pause;
  while (true) {
    {
      const MutexLock lock(mutex_);
      if (at_hand_ == 0) return true;
    }
    if (clock->NowMs() >= deadline_ms) return false;
    pause.For(kLookMs);
  }
}

void LateAnswers::Close() {
  const MutexLock lock(mutex_);
  closed_ = true;
  while (!waiting_.empty()) Put(*waiting_.begin(), Ending());
}

void LateAnswers::Give(Request* request, HttpAnswer answer) {
  const MutexLock lock(mutex_);
  Put(request, std::move(answer));
}

void LateAnswers::Put(Request* request, HttpAnswer answer) {
  if (std::exchange(request->answered, true)) return;
  request->answer = std::move(answer);
  if (request->suspended == nullptr) return;
  waiting_.erase(request);
  // From here on the connection may end at any time.
  MHD_resume_connection(std::exchange(request->suspended, nullptr));
}

}  // namespace hdps
