// Moves frames on one thread, and gives their requests to the queue.
#include "tools/serve/messages/message_front.h"

#include <glog/logging.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <utility>

#include "common/base/nearest_name.h"
#include "common/base/thread_annotations.h"
#include "common/net/node.h"
#include "common/net/node_loop.h"
#include "common/platform/executor.h"
#include "common/platform/monotonic_clock.h"
#include "common/protocol/message_frames.h"
#include "common/protocol/predict/predict_messages.h"
#include "tools/serve/messages/predict_answer.h"
#include "worker/data/row.h"

namespace hdps {
namespace {

// Bytes of all requests that wait or are being answered.
constexpr uint64_t kBytesAtHandMax = uint64_t{256} << 20;

uint64_t BytesOf(const Frame& frame) {
  uint64_t bytes = frame.envelope.size();
  for (const Buffer& section : frame.sections) bytes += section.size();
  return bytes;
}

// Tells a code as HTTP would, for figures that all protocols share.
int HttpCodeOf(Code code) {
  switch (code) {
    case Code::kOk:
      return 200;
    case Code::kInvalidArgument:
    case Code::kCorruption:
      return 400;
    case Code::kNotFound:
      return 404;
    case Code::kResourceExhausted:
      return 413;
    case Code::kUnavailable:
      return 503;
    default:
      return 500;
  }
}

// Answers that wait for the thread that sends them.
//
// Invariant: each request that was begun is at hand until its answer is here. Safe to call from any
// thread.
class Answers {
 public:
  explicit Answers(Transport& transport) : transport_(transport) {}

  // Returns false if there is no room for so many bytes.
  bool Begin(uint64_t bytes) HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (bytes_ + bytes > kBytesAtHandMax) return false;
    bytes_ += bytes;
    ++at_hand_;
    return true;
  }
  void End(uint64_t bytes, Outgoing answer) HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    bytes_ -= bytes;
    --at_hand_;
    ready_.push_back(std::move(answer));
    // Under the lock, so that the transport is there: it goes when nothing is at hand.
    transport_.Wake();
  }
  std::vector<Outgoing> Take() HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return std::exchange(ready_, {});
  }
  bool none_at_hand() const HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return at_hand_ == 0;
  }

 private:
  Transport& transport_;
  mutable Mutex mutex_;
  uint64_t bytes_ HDPS_GUARDED_BY(mutex_) = 0;
  uint64_t at_hand_ HDPS_GUARDED_BY(mutex_) = 0;
  std::vector<Outgoing> ready_ HDPS_GUARDED_BY(mutex_);
};

// Takes the answer to a request, once.
using AnswerTaker = std::function<void(Frame)>;

// The side of the models: a request in, an answer out.
class Answerer {
 public:
  Answerer(std::vector<WatchedModel> models, MonotonicClock& clock)
      : models_(std::move(models)), clock_(clock) {}

  // `take` may be called at once, or by the joiner later.
  void Answer(const Frame& frame, int64_t began_ns, ScoreJoiner& joiner,
              const AnswerTaker& take) const {
    PredictRequest request;
    const Status read = DecodeMessage(frame, &request);
    if (!read.ok()) return take(FrameOf(frame, RefusedReply(read)));
    const Result<const WatchedModel*> found = Find(request.model);
    if (!found.ok()) return take(FrameOf(frame, RefusedReply(found.status())));
    ServedModel& model = *(*found)->model;
    const bool rows = !request.table.empty();
    if (request.columns.empty() && !rows) return take(FrameOf(frame, NoteReply(model)));
    if (rows) return take(Lookup(frame, **found, std::move(request), began_ns));
    Score(frame.header.request_id, **found, std::move(request), began_ns, joiner, take);
  }
  static Frame FrameOf(const Frame& request, const PredictReply& reply) {
    return FrameOf(request.header.request_id, reply);
  }

 private:
  Result<const WatchedModel*> Find(const std::string& name) const {
    std::vector<std::string> names;
    std::string list;
    for (const WatchedModel& one : models_) {
      if (one.model->note().name == name || (name.empty() && models_.size() == 1)) return &one;
      names.push_back(one.model->note().name);
      list += (list.empty() ? "" : ", ") + names.back();
    }
    if (name.empty())
      return Status(Code::kInvalidArgument,
                    "there are the models " + list + ": expected the name of one");
    return Status(Code::kNotFound, "there is no model '" + Printable(name) + "'; there are " +
                                       list + DidYouMean(name, names));
  }

  static Frame FrameOf(uint64_t request_id, const PredictReply& reply) {
    Frame frame = EncodeMessage(reply);
    frame.header.request_id = request_id;
    return frame;
  }

  void Score(uint64_t request_id, const WatchedModel& from, PredictRequest request,
             int64_t began_ns, ScoreJoiner& joiner, const AnswerTaker& take) const {
    ServedModel& model = *from.model;
    const std::vector<SentName> outputs = request.outputs;
    const Clock step = request.step;
    const auto finish = [this, request_id, &from, outputs, began_ns, take](
                            const ScoreRequest* asked, const Result<ScoreAnswer>& answer) {
      Frame reply = FrameOf(
          request_id, answer.ok() ? ScoreReply(*answer, outputs) : RefusedReply(answer.status()));
      Tell(from, {.protocol = ServingProtocol::kMessage,
                  .code = HttpCodeOf(answer.status().code()),
                  .time_ns = clock_.NowNs() - began_ns,
                  .request = asked,
                  .answer = answer.ok() ? &*answer : nullptr});
      take(std::move(reply));  // The last thing: nothing is at hand any more.
    };
    Result<ScoreRequest> asked = ScoreRequestOf(model.note(), std::move(request));
    if (!asked.ok()) return finish(nullptr, asked.status());
    if (!model.ready()) return finish(&*asked, NotLoaded(model));
    joiner.Score({&model, step, *std::move(asked),
                  [finish](const ScoreRequest& scored, const Result<ScoreAnswer>& answer) {
                    finish(&scored, answer);
                  }});
  }
  Frame Lookup(const Frame& frame, const WatchedModel& from, PredictRequest request,
               int64_t began_ns) const {
    ServedModel& model = *from.model;
    const Clock step = request.step;
    const Result<LookupRequest> asked = LookupRequestOf(std::move(request));
    const Result<LookupAnswer> answer = !asked.ok()      ? Result<LookupAnswer>(asked.status())
                                        : !model.ready() ? NotLoaded(model)
                                                         : model.Lookup(*asked, step);
    Frame reply =
        FrameOf(frame, answer.ok() ? LookupReply(*answer) : RefusedReply(answer.status()));
    Tell(from, {.protocol = ServingProtocol::kLookup,
                .code = HttpCodeOf(answer.status().code()),
                .time_ns = clock_.NowNs() - began_ns});
    return reply;
  }
  static void Tell(const WatchedModel& from, const Answered& answered) {
    if (from.watch != nullptr) from.watch->Saw(answered);
  }
  static Status NotLoaded(const ServedModel& model) {
    return {Code::kUnavailable, "no version of model '" + model.note().name + "' is loaded"};
  }

  const std::vector<WatchedModel> models_;
  MonotonicClock& clock_;
};

// Takes requests from the transport, and gives it their answers.
class AnswerNode : public Node {
 public:
  AnswerNode(const Answerer& answerer, Answers& answers, RequestQueue& queue, MonotonicClock& clock)
      : answerer_(answerer), answers_(answers), queue_(queue), clock_(clock) {}

  void OnFrame(PeerId from, Frame frame) override {
    if (frame.header.kind != static_cast<uint16_t>(MessageKind::kPredictRequest)) {
      LOG_FIRST_N(WARNING, 20) << "a peer sent a " << NameOf(frame)
                               << ": whoever serves predictions takes no such message";
      return;
    }
    const uint64_t bytes = BytesOf(frame);
    if (bytes > kRequestBytesMax) {
      return Refuse(from, frame,
                    {Code::kResourceExhausted, std::to_string(bytes) +
                                                   " bytes in a request: expected at most " +
                                                   std::to_string(kRequestBytesMax)});
    }
    if (stopping_) return Refuse(from, frame, {Code::kUnavailable, "this server stops"});
    if (!answers_.Begin(bytes)) return Refuse(from, frame, Full());
    const int64_t began_ns = clock_.NowNs();
    const auto kept = std::make_shared<const Frame>(std::move(frame));
    const bool taken = queue_.Take([this, from, kept, bytes, began_ns](ScoreJoiner& joiner) {
      answerer_.Answer(*kept, began_ns, joiner, [this, from, bytes](Frame answer) {
        answers_.End(bytes, {from, std::move(answer)});
      });
    });
    if (!taken) answers_.End(bytes, {from, Answerer::FrameOf(*kept, RefusedReply(Full()))});
  }
  void OnTick(TimeMs) override {}
  Output TakeOutput() override {
    Output output;
    output.frames = answers_.Take();
    std::ranges::move(refusals_, std::back_inserter(output.frames));
    refusals_.clear();
    return output;
  }
  void RequestStop(const std::string&) override { stopping_ = true; }
  bool done() const override { return stopping_ && answers_.none_at_hand(); }
  int exit_status() const override { return 0; }
  const std::string& exit_reason() const override { return reason_; }

 private:
  static const char* NameOf(const Frame& frame) {
    return MessageKindName(static_cast<MessageKind>(frame.header.kind));
  }
  static Status Full() {
    return {Code::kUnavailable, "as many requests wait as may; ask again later"};
  }
  void Refuse(PeerId from, const Frame& frame, const Status& why) {
    refusals_.push_back({from, Answerer::FrameOf(frame, RefusedReply(why))});
  }

  const Answerer& answerer_;
  Answers& answers_;
  RequestQueue& queue_;
  MonotonicClock& clock_;
  bool stopping_ = false;
  std::vector<Outgoing> refusals_;
  const std::string reason_;
};

class LoopedFront : public MessageFront {
 public:
  LoopedFront(std::unique_ptr<Transport> transport, std::string address,
              std::vector<WatchedModel> models, RequestQueue& queue)
      : transport_(std::move(transport)),
        address_(std::move(address)),
        answers_(*transport_),
        answerer_(std::move(models), *clock_),
        node_(answerer_, answers_, queue, *clock_),
        loop_(StartThread("messages", [this] {
          NodeLoopOptions options;
          options.stop = &stop_;
          RunNodeLoop(node_, *transport_, *clock_, options);
        })) {}
  ~LoopedFront() override { Stop(); }

  const std::string& address() const override { return address_; }
  void Stop() override {
    if (loop_ == nullptr) return;
    stop_ = true;
    transport_->Wake();
    loop_->Join();
    loop_.reset();
  }

 private:
  const std::unique_ptr<MonotonicClock> clock_ = NewSystemClock();
  const std::unique_ptr<Transport> transport_;
  const std::string address_;
  Answers answers_;
  const Answerer answerer_;
  AnswerNode node_;
  std::atomic<bool> stop_ = false;
  std::unique_ptr<Thread> loop_;  // Last, because it uses all of these.
};

}  // namespace

Result<std::unique_ptr<MessageFront>> MessageFront::Listen(const MessageFrontOptions& options,
                                                           std::vector<WatchedModel> models,
                                                           RequestQueue& queue) {
  TransportOptions over = options.connections.Options(kServingPeer);
  over.part_bytes_max = kRequestBytesMax;
  over.shared_bytes_per_peer = 0;  // Answers are small.
  over.guests_rest = false;        // Nobody else asks.
  HoldAtMost(kBytesAtHandMax, &over.limits);
  return ListenOver(NewZmqTransport(over), options.listen, std::move(models), queue);
}

Result<std::unique_ptr<MessageFront>> MessageFront::ListenOver(std::unique_ptr<Transport> transport,
                                                               const std::string& listen,
                                                               std::vector<WatchedModel> models,
                                                               RequestQueue& queue) {
  Result<std::string> address = transport->Listen(listen);
  if (!address.ok()) {
    return Status(address.status().code(), "--listen: " + address.status().message());
  }
  return std::unique_ptr<MessageFront>(std::make_unique<LoopedFront>(
      std::move(transport), *std::move(address), std::move(models), queue));
}

}  // namespace hdps
