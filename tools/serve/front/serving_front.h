// Answers HTTP requests about served models: the Open Inference Protocol and TensorFlow Serving's.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/http/http_server.h"
#include "common/platform/monotonic_clock.h"
#include "tools/serve/front/model_target.h"
#include "tools/serve/front/request_queue.h"
#include "tools/serve/served_model.h"
#include "tools/serve/watch/answer_watch.h"

namespace hdps {

// Invariant: the thread of HTTP reads paths and metadata alone. Bodies are read, scored and written
// on the queue's threads, and a request for which there is no place is refused at once.
class ServingFront {
 public:
  // `models` have names that differ and fit IsModelName(). `open`: questions are answered without
  // the token; :use never is. Requires: what is passed outlives this, and this the server.
  ServingFront(std::vector<WatchedModel> models, bool open, RequestQueue& queue,
               MonotonicClock& clock);

  std::vector<HttpPath> Paths();

  // From now on this server is not ready.
  void Leave() { leaving_ = true; }

 private:
  // A request on its way through the queue.
  struct AtHand {
    WatchedModel served = {};
    ModelTarget target = {};
    ServingProtocol protocol = ServingProtocol::kInferJson;
    int64_t began_ns = 0;
    HttpPost post = {};
    HttpReply reply = nullptr;
  };

  bool ready() const;
  Result<const WatchedModel*> Find(const ModelTarget& target) const;
  // kNotFound if `step` is not the version that answers; kNoClock is any.
  Status CheckVersion(const ServedModel& model, Clock step) const;

  HttpAnswer Ready(const ServedModel* model) const;
  HttpAnswer Overview() const;
  HttpAnswer Tell(const TargetForm& form, std::string_view path) const;
  void Take(const TargetForm& form, HttpPost post, HttpReply reply);
  void TakeUse(const WatchedModel& served, HttpPost post, HttpReply reply);
  // Puts work into the queue, or refuses it.
  using Work = void (ServingFront::*)(const std::shared_ptr<AtHand>&, ScoreJoiner&);
  void Enqueue(AtHand hand, Work work);
  void Score(const std::shared_ptr<AtHand>& kept, ScoreJoiner& joiner);
  void Lookup(const std::shared_ptr<AtHand>& kept, ScoreJoiner&);
  void Use(const std::shared_ptr<AtHand>& kept, ScoreJoiner&);
  // Sends the answer and tells the watch, in this order.
  void Finish(const AtHand& hand, HttpAnswer answer, const ScoreRequest* request = nullptr,
              const ScoreAnswer* scores = nullptr) const;

  const std::vector<WatchedModel> models_;
  const bool open_;
  RequestQueue& queue_;
  MonotonicClock& clock_;
  std::atomic<bool> leaving_ = false;
};

}  // namespace hdps
