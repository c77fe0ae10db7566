// Leads requests to models, and makes an HTTP answer of what comes of them.
#include "tools/serve/front/serving_front.h"

#include <charconv>
#include <optional>
#include <utility>

#include "common/base/nearest_name.h"
#include "common/base/outside_text.h"
#include "tools/serve/front/model_json.h"
#include "tools/serve/requests/request_forms.h"
#include "tools/serve/requests/request_table.h"

namespace hdps {
namespace {

constexpr char kJsonBytes[] = "inference-header-content-length", kRequestId[] = "x-request-id";

HttpAnswer Json(int status, std::string text) {
  return {.status = status, .body = std::make_shared<const std::string>(std::move(text))};
}

HttpAnswer Error(int status, const std::string& message) {
  HttpAnswer answer = Json(status, ErrorBody(message));
  if (status == 503) answer.headers = {{"Retry-After", "1"}};
  return answer;
}

HttpAnswer Error(const Status& status) {
  switch (status.code()) {
    case Code::kInvalidArgument:
      return Error(400, status.message());
    case Code::kNotFound:
      return Error(404, status.message());
    case Code::kResourceExhausted:
      return Error(413, status.message());
    case Code::kUnavailable:
      return Error(503, status.message());
    default:
      return Error(500, status.message());
  }
}

HttpAnswer OtherMethod(const std::string& allowed) {
  HttpAnswer answer = Error(405, allowed + " is allowed here");
  answer.headers.emplace_back("Allow", allowed);
  return answer;
}

HttpAnswer Written(WrittenAnswer written) {
  HttpAnswer answer = Json(200, std::move(written.body));
  answer.type = std::move(written.type);
  answer.headers = std::move(written.headers);
  return answer;
}

bool IsInfer(const TargetForm& form) { return form.before == kInferTargets.before; }

// A request for what is asked of a model by POST, and what is told of it by GET.
bool IsQuestion(const TargetForm& form, const std::string& verb) {
  return IsInfer(form) ? verb == "infer" : verb == "predict" || verb == "lookup";
}
bool IsTold(const TargetForm& form, const std::string& verb) {
  return verb.empty() || (IsInfer(form) && verb == "ready");
}
Status NoSuchVerb(const TargetForm& form, const std::string& verb) {
  const std::vector<std::string> known = IsInfer(form)
                                             ? std::vector<std::string>{"infer", "ready"}
                                             : std::vector<std::string>{"predict", "lookup", "use"};
  std::string list;
  for (const std::string& one : known) list += (list.empty() ? "" : ", ") + one;
  return Status(Code::kNotFound, "a model has no '" + verb + "' here; there are " + list +
                                     (IsInfer(form) ? ""
                                                    : ", where use takes no version in its "
                                                      "path and wants the token"));
}

Status NotLoaded(const ServedModel& model) {
  return Status(Code::kUnavailable, "no version of model '" + model.note().name + "' is loaded");
}

// Returns the id that a request has in its headers; empty if there is none.
std::string IdOf(const HttpPost& post) {
  const auto header = post.headers.find(kRequestId);
  return header == post.headers.end() ? "" : header->second;
}

// Returns the length of the JSON before binary tensors, nothing if the request does not tell it.
// Errors: kInvalidArgument if it is not a number.
Result<std::optional<size_t>> JsonBytes(const HttpPost& post) {
  const auto header = post.headers.find(kJsonBytes);
  if (header == post.headers.end()) return std::optional<size_t>();
  const std::string& text = header->second;
  size_t bytes = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  if (error == std::errc() && end == text.data() + text.size()) return std::optional(bytes);
  return Status(Code::kInvalidArgument, "Inference-Header-Content-Length is '" + text +
                                            "'; give the number of bytes of the JSON");
}

}  // namespace

ServingFront::ServingFront(std::vector<WatchedModel> models, bool open, RequestQueue& queue,
                           MonotonicClock& clock)
    : models_(std::move(models)), open_(open), queue_(queue), clock_(clock) {}

std::vector<HttpPath> ServingFront::Paths() {
  std::vector<HttpPath> paths;
  const auto tell = [&](std::string path, bool open, auto answer) {
    paths.push_back({std::move(path), open, [answer](const HttpRequest&) { return answer(); }});
  };
  const auto live = [] { return Json(200, R"({"live":true})"); };
  const auto ready = [this] { return Ready(nullptr); };
  tell("/", open_, [this] { return Overview(); });
  tell("/healthz", true, live);
  tell("/readyz", true, ready);
  tell("/v2", open_, [] { return Json(200, ServerMetadata()); });
  tell("/v2/health/live", true, live);
  tell("/v2/health/ready", true, ready);
  paths.push_back({"/v2/repository/index", open_, nullptr, [this](HttpPost, HttpReply reply) {
                     std::vector<ServedModel*> models;
                     for (const WatchedModel& served : models_) models.push_back(served.model);
                     reply(Json(200, RepositoryIndex(models)));
                   }});
  for (const TargetForm& form : {kInferTargets, kPredictTargets}) {
    paths.push_back({std::string(form.before), open_,
                     [this, form](const HttpRequest& request) { return Tell(form, request.path); },
                     [this, form](HttpPost post, HttpReply reply) {
                       Take(form, std::move(post), std::move(reply));
                     }});
  }
  // A path of its own is longer than the one above, and so it is the one that is found.
  for (const WatchedModel& served : models_) {
    const std::string& name = served.model->note().name;
    paths.push_back({std::string(kPredictTargets.before) + name + ":use", false, nullptr,
                     [this, &served](HttpPost post, HttpReply reply) {
                       TakeUse(served, std::move(post), std::move(reply));
                     }});
    // A probe has no token.
    tell(std::string(kInferTargets.before) + name + "/ready", true,
         [this, &served] { return Ready(served.model); });
  }
  return paths;
}

bool ServingFront::ready() const {
  if (leaving_) return false;
  for (const WatchedModel& served : models_) {
    if (!served.model->ready()) return false;
  }
  return true;
}

Result<const WatchedModel*> ServingFront::Find(const ModelTarget& target) const {
  std::vector<std::string> known;
  std::string list;
  for (const WatchedModel& served : models_) {
    const std::string& name = served.model->note().name;
    if (name == target.model) return &served;
    known.push_back(name);
    list += (list.empty() ? "'" : ", '") + name + "'";
  }
  return Status(Code::kNotFound, "there is no model '" + target.model + "'" +
                                     DidYouMean(target.model, known) + "; there is " + list);
}

Status ServingFront::CheckVersion(const ServedModel& model, Clock step) const {
  if (step == kNoClock) return {};
  if (!model.ready()) return NotLoaded(model);
  const std::string& name = model.note().name;
  const Clock answering = model.step();
  if (step == answering) return {};
  return Status(Code::kNotFound,
                "model '" + name + "' answers as version " + std::to_string(answering) +
                    ", not as " + std::to_string(step) + "; POST " +
                    std::string(kPredictTargets.before) + name +
                    ":use with {\"version\": " + std::to_string(step) + "} takes another");
}

HttpAnswer ServingFront::Ready(const ServedModel* model) const {
  const bool is = model == nullptr ? ready() : !leaving_ && model->ready();
  const std::string name = model == nullptr ? "" : R"("name":")" + model->note().name + R"(",)";
  return Json(is ? 200 : 503, "{" + name + R"("ready":)" + (is ? "true}" : "false}"));
}

HttpAnswer ServingFront::Overview() const {
  std::string text = "hdps serve answers for";
  for (const WatchedModel& served : models_) {
    const ServedModel& model = *served.model;
    text +=
        "\n  " + model.note().name +
        (model.ready() ? " as version " + std::to_string(model.step()) : ", which is not loaded");
  }
  text +=
      "\nGET  /v2/models/NAME              inputs and outputs"
      "\nPOST /v2/models/NAME/infer        the Open Inference Protocol"
      "\nGET  /v1/models/NAME              versions"
      "\nPOST /v1/models/NAME:predict      {\"instances\": [{\"COLUMN\": VALUE}]}"
      "\nPOST /v1/models/NAME:lookup       rows of a table"
      "\nPOST /v1/models/NAME:use          another version, with the token"
      "\nGET  /metrics /healthz /readyz\n";
  return {.type = "text/plain; charset=utf-8",
          .body = std::make_shared<const std::string>(std::move(text))};
}

HttpAnswer ServingFront::Tell(const TargetForm& form, std::string_view path) const {
  const Result<ModelTarget> target = ReadTarget(form, EscapeUntrusted(path));
  if (!target.ok()) return Error(target.status());
  if (!IsTold(form, target->verb)) {
    return IsQuestion(form, target->verb) ? OtherMethod("POST")
                                          : Error(NoSuchVerb(form, target->verb));
  }
  const Result<const WatchedModel*> served = Find(*target);
  if (!served.ok()) return Error(served.status());
  const ServedModel& model = *(*served)->model;
  if (const Status is = CheckVersion(model, target->step); !is.ok()) return Error(is);
  if (!IsInfer(form)) return Json(200, VersionStates(model, target->step));
  return target->verb.empty() ? Json(200, ModelMetadata(model)) : Ready(&model);
}

void ServingFront::Take(const TargetForm& form, HttpPost post, HttpReply reply) {
  const Result<ModelTarget> target = ReadTarget(form, EscapeUntrusted(post.path));
  if (!target.ok()) return reply(Error(target.status()));
  if (!IsQuestion(form, target->verb)) {
    return reply(IsTold(form, target->verb) ? OtherMethod("GET, HEAD")
                                            : Error(NoSuchVerb(form, target->verb)));
  }
  const Result<const WatchedModel*> served = Find(*target);
  if (!served.ok()) return reply(Error(served.status()));
  AtHand hand = {
      .served = **served, .target = *target, .post = std::move(post), .reply = std::move(reply)};
  if (target->verb == "lookup") {
    hand.protocol = ServingProtocol::kLookup;
    return Enqueue(std::move(hand), &ServingFront::Lookup);
  }
  if (!IsInfer(form)) {
    hand.protocol = ServingProtocol::kPredict;
  } else if (hand.post.headers.contains(kJsonBytes)) {
    hand.protocol = ServingProtocol::kInferBinary;
  }
  Enqueue(std::move(hand), &ServingFront::Score);
}

void ServingFront::TakeUse(const WatchedModel& served, HttpPost post, HttpReply reply) {
  // It is no answer of the model, so the watch is not told.
  Enqueue({.served = {.model = served.model}, .post = std::move(post), .reply = std::move(reply)},
          &ServingFront::Use);
}

void ServingFront::Enqueue(AtHand hand, Work work) {
  hand.began_ns = clock_.NowNs();
  if (hand.post.headers.contains("content-encoding")) {
    return Finish(hand, Error(415, "a body with Content-Encoding is not read; send it as it is"));
  }
  const auto kept = std::make_shared<AtHand>(std::move(hand));
  if (queue_.Take([this, kept, work](ScoreJoiner& joiner) { (this->*work)(kept, joiner); })) {
    return;
  }
  Finish(*kept, Error(503, "as many requests wait as may; ask again later"));
}

void ServingFront::Score(const std::shared_ptr<AtHand>& kept, ScoreJoiner& joiner) {
  AtHand& hand = *kept;
  ServedModel& model = *hand.served.model;
  if (!model.ready()) return Finish(hand, Error(NotLoaded(model)));
  const auto read = [&]() -> Result<AskedScore> {
    if (hand.protocol == ServingProtocol::kPredict) {
      return ReadPredict(model.note(), std::move(hand.post.body));
    }
    HDPS_ASSIGN_OR_RETURN(const std::optional<size_t> json_bytes, JsonBytes(hand.post));
    return ReadInfer(model.note(), std::move(hand.post.body), json_bytes);
  };
  Result<AskedScore> asked = read();
  if (!asked.ok()) return Finish(hand, Error(asked.status()));
  ScoreRequest request = std::move(asked->request);
  if (request.id.empty()) {
    request.id = IdOf(hand.post);
    const Status fits = CheckId({"the header X-Request-Id"}, request.id);
    if (!fits.ok()) return Finish(hand, Error(fits));
  }
  joiner.Score({&model, hand.target.step, std::move(request),
                [this, kept, write = std::move(asked->write)](const ScoreRequest& scored,
                                                              const Result<ScoreAnswer>& answer) {
                  if (!answer.ok()) return Finish(*kept, Error(answer.status()), &scored);
                  Finish(*kept, Written(write(*answer)), &scored, &*answer);
                }});
}

void ServingFront::Lookup(const std::shared_ptr<AtHand>& kept, ScoreJoiner&) {
  AtHand& hand = *kept;
  ServedModel& model = *hand.served.model;
  if (!model.ready()) return Finish(hand, Error(NotLoaded(model)));
  const Result<AskedLookup> asked = ReadLookup(std::move(hand.post.body));
  if (!asked.ok()) return Finish(hand, Error(asked.status()));
  const Result<LookupAnswer> answer = model.Lookup(asked->request, hand.target.step);
  Finish(hand, answer.ok() ? Written(asked->write(*answer)) : Error(answer.status()));
}

void ServingFront::Use(const std::shared_ptr<AtHand>& kept, ScoreJoiner&) {
  const AtHand& hand = *kept;
  ServedModel& model = *hand.served.model;
  const Result<Clock> step = ReadUse(hand.post.body);
  const Status used = step.ok() ? model.Use(*step) : step.status();
  if (!used.ok()) return Finish(hand, Error(used));
  const std::string wanted = *step == kNoClock ? "newest" : std::to_string(*step);
  Finish(hand, Json(202, R"({"version":")" + wanted + R"(","model_version":")" +
                             (model.ready() ? std::to_string(model.step()) : "") + R"("})"));
}

void ServingFront::Finish(const AtHand& hand, HttpAnswer answer, const ScoreRequest* request,
                          const ScoreAnswer* scores) const {
  // The figures have a request before its caller has the answer, so who asks both in turn sees it.
  if (hand.served.watch != nullptr) {
    hand.served.watch->Saw({.protocol = hand.protocol,
                            .code = answer.status,
                            .time_ns = clock_.NowNs() - hand.began_ns,
                            .request = request,
                            .answer = scores});
  }
  hand.reply(std::move(answer));
}

}  // namespace hdps
