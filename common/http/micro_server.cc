// Serves by GNU libmicrohttpd, on one thread that the library starts.
//
// The thread uses poll(), which walks over all connections that are not suspended at each turn; the
// benchmark `http` says what 1,024 cost. With epoll, version 0.9.75 does not see the end of a
// connection that came together with bytes, and the connection keeps its place for as long as one
// without progress may.
#include <glog/logging.h>
#include <microhttpd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>
#include <utility>

#include "common/http/http_server.h"
#include "common/http/late_answers.h"
#include "common/http/library_log.h"
#include "common/http/listening_socket.h"
#include "common/http/own_answers.h"
#include "common/http/request_headers.h"
#include "common/http/request_rules.h"
#include "common/http/visitor_rules.h"
#include "common/net/listening.h"

namespace hdps {
namespace {

constexpr char kPriorities[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";
// No part of a page comes from elsewhere, and no page of others shows or reads this one.
constexpr std::pair<const char*, const char*> kHeadersOfAll[] = {
    {"Content-Security-Policy",
     "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
     "object-src 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
};

// The library's default ends the process with a line on stderr, which may be nobody's.
void Panic(void*, const char* file, unsigned line, const char* reason) {
  LOG(FATAL) << "libmicrohttpd " << file << ":" << line << ": " << reason;
}

// Invariant: everything but address_, listening_ and late_ belongs to the library's thread once
// daemon_ has started. bodies_ is the sum of `held` of all requests.
class MicroServer : public HttpServer {
 public:
  MicroServer(const HttpOptions& options, std::vector<HttpPath> paths)
      : options_(options),
        own_(options.json_errors),
        clock_(options.clock == nullptr ? *own_clock_ : *options.clock),
        late_(std::make_shared<LateAnswers>(own_)) {
    for (HttpPath& path : paths) {
      std::string name = path.path;
      CHECK(paths_.emplace(std::move(name), std::move(path)).second) << "a path is there twice";
    }
  }
  ~MicroServer() override {
    if (daemon_ == nullptr) return;
    late_->Close();
    MHD_stop_daemon(daemon_);
    if (!listening_) close(descriptor_);
  }
  Status Listen();
  const std::string& address() const override { return address_; }
  void StopListening() override;
  bool AwaitPosts(int64_t timeout_ms) override { return late_->AwaitNone(timeout_ms); }

 private:
  // A request between the calls of the library.
  struct Asked {
    std::string target;  // As it was sent.
    bool begun = false;
    const HttpPath* path = nullptr;     // Null: there is none, and it is refused.
    std::optional<HttpAnswer> refusal;  // The answer once the body has gone by.
    std::string body;
    int64_t body_began_ms = 0;
    uint64_t announced = 0;                      // Bytes of the body; 0 if it is chunked.
    uint64_t received = 0;                       // Bytes of the body so far, kept or not.
    uint64_t held = 0;                           // Bytes of the body for which there is room.
    std::shared_ptr<LateAnswers::Request> late;  // Of a POST.
    bool taken = false;
  };
  // The library calls these. The state of a request is an Asked.
  static MHD_Result Admit(void* self, const sockaddr*, socklen_t) {
    // The library would let a connection beyond the limit wait.
    const auto* const server = static_cast<MicroServer*>(self);
    return server->connections_ < server->options_.limits.connections ? MHD_YES : MHD_NO;
  }
  static void Count(void* self, MHD_Connection*, void**, MHD_ConnectionNotificationCode code) {
    static_cast<MicroServer*>(self)->connections_ += code == MHD_CONNECTION_NOTIFY_STARTED ? 1 : -1;
  }
  static void* Begin(void*, const char* target, MHD_Connection*) {
    auto* const asked = new Asked;
    asked->target = target;
    return asked;
  }
  static void End(void* self, MHD_Connection*, void** state, MHD_RequestTerminationCode) {
    const std::unique_ptr<Asked> asked(static_cast<Asked*>(std::exchange(*state, nullptr)));
    if (asked != nullptr) static_cast<MicroServer*>(self)->Forget(*asked);
  }
  // The first call is before the body, and an answer then ends the connection. Others bring pieces
  // of the body. The last is at the end of the request, and again when a suspended one goes on.
  static MHD_Result Answer(void* self, MHD_Connection* connection, const char*, const char* method,
                           const char*, const char* data, size_t* bytes, void** state) {
    auto* const server = static_cast<MicroServer*>(self);
    auto* const asked = static_cast<Asked*>(*state);
    if (!std::exchange(asked->begun, true)) return server->Judge(connection, method, asked);
    if (*bytes != 0) return server->Collect(connection, {data, std::exchange(*bytes, 0)}, asked);
    return server->Finish(connection, asked);
  }

  bool tls() const { return !options_.certificate.empty(); }
  // A refused body that may be as long is read to its end, so that its sender sees the answer.
  uint64_t dropped_bytes_max() const { return 2 * uint64_t{options_.limits.body_bytes}; }
  const HttpPath* PathOf(std::string_view asked) const;
  HttpAnswer NoSuchPath() const;
  HttpAnswer NoSuchMethod(const HttpPath& path) const;
  std::optional<HttpAnswer> Accept(std::string_view method, const BodyFrame& frame, Asked* asked);
  std::optional<HttpAnswer> Hold(uint64_t bytes, Asked* asked);
  void Drop(Asked* asked);
  void Forget(Asked& asked);

  MHD_Result Judge(MHD_Connection* connection, std::string_view method, Asked* asked);
  MHD_Result Collect(MHD_Connection* connection, std::string_view piece, Asked* asked);
  // A chunked body has the time of the bytes that it has brought.
  static int64_t BodyMsMaxOf(const Asked& asked) {
    return HttpBodyMsMax(std::max(asked.announced, asked.received));
  }
  bool IsLate(const Asked& asked) const {
    return clock_.NowMs() - asked.body_began_ms > BodyMsMaxOf(asked);
  }
  void SendAtOnce(MHD_Connection* connection, const HttpAnswer& answer) const;
  MHD_Result Finish(MHD_Connection* connection, Asked* asked);
  MHD_Result Reply(MHD_Connection* connection, const HttpAnswer& answer) const;

  const HttpOptions options_;
  const OwnAnswers own_;
  const std::unique_ptr<MonotonicClock> own_clock_ = NewSystemClock();
  MonotonicClock& clock_;
  std::map<std::string, HttpPath, std::less<>> paths_;
  std::optional<VisitorRules> visitors_;  // There once the port is known.
  std::string address_;
  LibraryLog log_;
  unsigned connections_ = 0;
  uint64_t bodies_ = 0;
  int descriptor_ = -1;  // The library closes it unless listening ends before.
  std::atomic<bool> listening_ = true;
  const std::shared_ptr<LateAnswers> late_;
  MHD_Daemon* daemon_ = nullptr;
};

Status MicroServer::Listen() {
  HDPS_ASSIGN_OR_RETURN(Address address, HttpAddress(options_.listen));
  HDPS_ASSIGN_OR_RETURN(const ListeningSocket socket, ListenAt(address));
  HDPS_ASSIGN_OR_RETURN(const std::string dialed,
                        AsOthersDial(address, address.Endpoint(socket.port)));
  address_ = (tls() ? "https" : "http") + dialed.substr(dialed.find(':'));
  visitors_.emplace(options_, address.host, socket.port);
  descriptor_ = socket.descriptor;

  MHD_set_panic_func(&Panic, nullptr);
  const HttpLimits& limits = options_.limits;
  unsigned flags = MHD_USE_POLL_INTERNAL_THREAD | MHD_USE_ERROR_LOG | MHD_ALLOW_SUSPEND_RESUME;
  std::vector<MHD_OptionItem> tls_options;
  if (tls()) {
    flags |= MHD_USE_TLS;
    const auto text = [](const char* pem) { return const_cast<char*>(pem); };
    tls_options.push_back({MHD_OPTION_HTTPS_MEM_CERT, 0, text(options_.certificate.c_str())});
    tls_options.push_back({MHD_OPTION_HTTPS_MEM_KEY, 0, text(options_.key.c_str())});
    tls_options.push_back({MHD_OPTION_HTTPS_PRIORITIES, 0, text(kPriorities)});
  }
  tls_options.push_back({MHD_OPTION_END, 0, nullptr});

  daemon_ = MHD_start_daemon(
      flags, 0, &Admit, this, &Answer, this, MHD_OPTION_EXTERNAL_LOGGER, &WriteLine, &log_,
      MHD_OPTION_LISTEN_SOCKET, socket.descriptor, MHD_OPTION_CONNECTION_LIMIT,
      limits.connections + 1, MHD_OPTION_PER_IP_CONNECTION_LIMIT, limits.connections_of_one_address,
      MHD_OPTION_CONNECTION_MEMORY_LIMIT, limits.connection_bytes, MHD_OPTION_CONNECTION_TIMEOUT,
      kHttpIdleSecondsMax, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_NOTIFY_CONNECTION, &Count,
      this, MHD_OPTION_URI_LOG_CALLBACK, &Begin, nullptr, MHD_OPTION_NOTIFY_COMPLETED, &End, this,
      MHD_OPTION_ARRAY, tls_options.data(), MHD_OPTION_END);
  const std::string why = log_.EndOfStart();
  if (daemon_ != nullptr) return {};
  // The library has closed the socket, or the process ends now.
  return Status(Code::kInvalidArgument,
                "cannot serve HTTP at " + address_ + ": " + why +
                    (tls() ? "; give a certificate and its key as PEM" : ""));
}

void MicroServer::StopListening() {
  if (!listening_.exchange(false)) return;
  MHD_quiesce_daemon(daemon_);
  // Whoever connects from now on is refused, and does not wait for the end of this server.
  shutdown(descriptor_, SHUT_RDWR);
}

const HttpPath* MicroServer::PathOf(std::string_view asked) const {
  const auto exact = paths_.find(asked);
  if (exact != paths_.end()) return &exact->second;
  for (size_t slash = asked.rfind('/'); slash != std::string_view::npos && slash > 0;
       slash = asked.rfind('/', slash - 1)) {
    const auto above = paths_.find(asked.substr(0, slash + 1));
    if (above != paths_.end()) return &above->second;
  }
  return nullptr;
}

HttpAnswer MicroServer::NoSuchPath() const {
  const char* const between = options_.json_errors ? " " : "\n";
  std::string list;
  for (const auto& [name, path] : paths_) list += between + name;
  return own_.Say(404, "there is no such path; there are:" + list);
}

HttpAnswer MicroServer::NoSuchMethod(const HttpPath& path) const {
  std::string allowed = path.answer ? "GET, HEAD" : "";
  if (path.take) allowed += allowed.empty() ? "POST" : ", POST";
  HttpAnswer answer = own_.Say(405, "this path allows " + allowed);
  answer.headers.emplace_back("Allow", allowed);
  return answer;
}

// Makes room for the body of a request, or says why it is not read.
std::optional<HttpAnswer> MicroServer::Accept(std::string_view method, const BodyFrame& frame,
                                              Asked* asked) {
  if (asked->path == nullptr) return NoSuchPath();
  const bool get = method == "GET" || method == "HEAD", post = method == "POST";
  if (!(get && asked->path->answer) && !(post && asked->path->take)) {
    return NoSuchMethod(*asked->path);
  }
  if (get && !frame.empty()) return own_.Say(413, "a request may not have a body");
  if (std::optional<HttpAnswer> refusal = Hold(frame.bytes, asked)) return refusal;
  if (get) return std::nullopt;
  asked->body.reserve(frame.bytes);
  asked->late = late_->Begin();
  return std::nullopt;
}

// Makes room for so many bytes of the body in all, or says why there is none.
std::optional<HttpAnswer> MicroServer::Hold(uint64_t bytes, Asked* asked) {
  const HttpLimits& limits = options_.limits;
  if (bytes > limits.body_bytes) {
    return own_.Say(413, limits.body_bytes == 0 ? "a request may not have a body"
                                                : "the body is longer than " +
                                                      std::to_string(limits.body_bytes) + " bytes");
  }
  if (bodies_ - asked->held + bytes > limits.bodies_bytes) {
    return own_.SayLater("requests under way hold as much as they may together, " +
                         std::to_string(limits.bodies_bytes) + " bytes; ask again");
  }
  bodies_ += bytes - asked->held;
  asked->held = bytes;
  return std::nullopt;
}

void MicroServer::Drop(Asked* asked) {
  std::string().swap(asked->body);
  bodies_ -= std::exchange(asked->held, 0);
}

void MicroServer::Forget(Asked& asked) {
  Drop(&asked);
  if (asked.late != nullptr) late_->End();
}

MHD_Result MicroServer::Judge(MHD_Connection* connection, std::string_view method, Asked* asked) {
  const std::optional<BodyFrame> frame = FrameOf(connection);
  if (!frame) {
    return Reply(connection, own_.Say(400,
                                      "a body has either one Content-Length or "
                                      "\"Transfer-Encoding: chunked\""));
  }
  asked->body_began_ms = clock_.NowMs();
  asked->announced = frame->bytes;
  asked->path = PathOf(SplitTarget(asked->target).path);
  asked->refusal = visitors_->Refuse(connection, method, asked->target, asked->path);
  const bool is_stranger = asked->refusal.has_value();
  if (!is_stranger) asked->refusal = Accept(method, *frame, asked);
  if (!asked->refusal || frame->empty()) return MHD_YES;
  // The sender of a body that is not read may lose the answer with the connection, unless it waits
  // for leave to send.
  const bool waits = HeaderOf(connection, "Expect").has_value();
  const bool is_short = dropped_bytes_max() > 0 && frame->bytes <= dropped_bytes_max();
  return is_stranger || waits || !is_short ? Reply(connection, *asked->refusal) : MHD_YES;
}

MHD_Result MicroServer::Collect(MHD_Connection* connection, std::string_view piece, Asked* asked) {
  asked->received += piece.size();
  if (asked->received > dropped_bytes_max()) return MHD_NO;
  if (IsLate(*asked)) {
    Drop(asked);
    SendAtOnce(connection, own_.Say(408, "the body has not come within " +
                                             std::to_string(BodyMsMaxOf(*asked) / 1000) +
                                             " s, and the connection is closed"));
    return MHD_NO;
  }
  if (!asked->refusal && asked->received > asked->held) {
    asked->refusal = Hold(asked->received, asked);
    if (asked->refusal) Drop(asked);
  }
  if (!asked->refusal) asked->body += piece;
  return MHD_YES;
}

// Sends an answer in the middle of a body, where the library takes none. Its sender has few bytes
// on their way, so the end of the connection does not overtake the answer. The library has nothing
// to send then, and TLS would want its session: there the connection ends without an answer.
void MicroServer::SendAtOnce(MHD_Connection* connection, const HttpAnswer& answer) const {
  const MHD_ConnectionInfo* const info =
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  if (tls() || info == nullptr) return;
  const std::string text = "HTTP/1.1 " + std::to_string(answer.status) + " " +
                           MHD_get_reason_phrase_for(static_cast<unsigned>(answer.status)) +
                           "\r\nContent-Type: " + answer.type +
                           "\r\nContent-Length: " + std::to_string(answer.body->size()) +
                           "\r\nConnection: close\r\n\r\n" + *answer.body;
  static_cast<void>(send(info->connect_fd, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
}

MHD_Result MicroServer::Finish(MHD_Connection* connection, Asked* asked) {
  if (asked->refusal) return Reply(connection, *asked->refusal);
  const HttpTarget target = SplitTarget(asked->target);
  if (asked->late == nullptr) {
    HttpRequest request;
    request.path = target.path;
    request.query = [&](std::string_view name) {
      return QueryValue(target.query, name).value_or("");
    };
    return Reply(connection, asked->path->answer(request));
  }
  if (!std::exchange(asked->taken, true)) {
    HttpPost post{std::string(target.path), HeadersOf(connection), std::move(asked->body)};
    asked->path->take(std::move(post), late_->ReplyTo(asked->late));
  }
  const std::optional<HttpAnswer> answer = late_->AnswerOrSuspend(asked->late.get(), connection);
  return answer ? Reply(connection, *answer) : MHD_YES;
}

MHD_Result MicroServer::Reply(MHD_Connection* connection, const HttpAnswer& answer) const {
  using Body = std::shared_ptr<const std::string>;
  auto kept =
      std::make_unique<Body>(answer.body ? answer.body : std::make_shared<const std::string>());
  const std::string& text = **kept;
  MHD_Response* const response = MHD_create_response_from_buffer_with_free_callback_cls(
      text.size(), const_cast<char*>(text.data()),
      [](void* body) { delete static_cast<Body*>(body); }, kept.get());
  if (response == nullptr) return MHD_NO;
  static_cast<void>(kept.release());  // The response has it.
  const auto add = [&](const char* name, const std::string& value) {
    MHD_add_response_header(response, name, value.c_str());
  };
  add("Content-Type", answer.type);
  add("Cache-Control", answer.cacheable ? "private, max-age=300" : "no-store");
  for (const auto& [name, value] : kHeadersOfAll) add(name, value);
  for (const auto& [name, value] : answer.headers) add(name.c_str(), value);
  if (!listening_) add("Connection", "close");
  const MHD_Result queued =
      MHD_queue_response(connection, static_cast<unsigned>(answer.status), response);
  MHD_destroy_response(response);
  return queued;
}

}  // namespace

Status CheckHttpAddress(const std::string& listen, bool* reached) {
  HDPS_ASSIGN_OR_RETURN(const Address address, HttpAddress(listen));
  *reached = !address.OnThisMachine();
  return {};
}

Result<std::unique_ptr<HttpServer>> HttpServer::Start(const HttpOptions& options,
                                                      std::vector<HttpPath> paths) {
  CHECK(!options.token.empty()) << "anybody could look";
  auto server = std::make_unique<MicroServer>(options, std::move(paths));
  HDPS_RETURN_IF_ERROR(server->Listen());
  return std::unique_ptr<HttpServer>(std::move(server));
}

}  // namespace hdps
