// Serves by GNU libmicrohttpd, on one thread that the library starts.
//
// The thread uses poll(), which 64 connections allow. With epoll, version 0.9.75 does not see the
// end of a connection that came together with bytes, and the connection keeps its place for as long
// as one without progress may.
#include <glog/logging.h>
#include <microhttpd.h>
#include <strings.h>

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <map>
#include <optional>
#include <utility>

#include "common/base/outside_text.h"
#include "common/base/thread_annotations.h"
#include "common/http/http_server.h"
#include "common/http/listening_socket.h"
#include "common/http/request_rules.h"
#include "common/net/listening.h"
#include "common/platform/monotonic_clock.h"

namespace hdps {
namespace {

constexpr char kTokenParameter[] = "token";
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

// Writes the library's lines to the log. The first of the start is kept too, because it says why it
// failed.
class LibraryLog {
 public:
  void Write(std::string line) {
    while (!line.empty() && (line.back() == '\n' || line.back() == '.')) line.pop_back();
    const MutexLock lock(mutex_);
    if (starting_ && why_.empty()) why_ = line;
    const int64_t now_ms = clock_->NowMs();
    if (const auto told = rate_.Take(std::move(line), now_ms)) {
      LOG(INFO) << "http: " << EscapeUntrusted(*told);
    }
    if (const auto left_out = rate_.LeftOut(now_ms)) LOG(INFO) << "http: " << *left_out;
  }
  // Returns the first line of the start without its period, and keeps none from now on.
  std::string EndOfStart() {
    const MutexLock lock(mutex_);
    starting_ = false;
    return std::exchange(why_, "");
  }

 private:
  const std::unique_ptr<MonotonicClock> clock_ = NewSystemClock();
  Mutex mutex_;  // The thread that starts and the one that answers both write.
  bool starting_ HDPS_GUARDED_BY(mutex_) = true;
  std::string why_ HDPS_GUARDED_BY(mutex_);
  LineRateLimit rate_ HDPS_GUARDED_BY(mutex_);
};

void WriteLine(void* log, const char* format, va_list values) __attribute__((format(printf, 2, 0)));
void WriteLine(void* log, const char* format, va_list values) {
  char line[512];
  std::vsnprintf(line, sizeof(line), format, values);
  static_cast<LibraryLog*>(log)->Write(line);
}

// The library's default ends the process with a line on stderr, which may be nobody's.
void Panic(void*, const char* file, unsigned line, const char* reason) {
  LOG(FATAL) << "libmicrohttpd " << file << ":" << line << ": " << reason;
}

HttpAnswer Sentence(int status, const std::string& text) {
  return {status, "text/plain; charset=utf-8", std::make_shared<const std::string>(text + "\n")};
}

std::optional<std::string_view> HeaderOf(MHD_Connection* connection, std::string_view name) {
  const char* value = nullptr;
  size_t bytes = 0;
  if (MHD_lookup_connection_value_n(connection, MHD_HEADER_KIND, name.data(), name.size(), &value,
                                    &bytes) != MHD_YES) {
    return std::nullopt;
  }
  return value == nullptr ? std::string_view() : std::string_view(value, bytes);
}

int CountOf(MHD_Connection* connection, const std::string& name) {
  std::pair<const std::string&, int> count(name, 0);
  MHD_get_connection_values(
      connection, MHD_HEADER_KIND,
      [](void* to, MHD_ValueKind, const char* key, const char*) {
        auto* const counted = static_cast<decltype(count)*>(to);
        counted->second += strcasecmp(key, counted->first.c_str()) == 0;
        return MHD_YES;
      },
      &count);
  return count.second;
}

bool HasBody(MHD_Connection* connection) {
  if (HeaderOf(connection, "Transfer-Encoding")) return true;
  const std::optional<std::string_view> length = HeaderOf(connection, "Content-Length");
  return length && length->find_first_not_of('0') != std::string_view::npos;
}

// Invariant: everything but address() belongs to the library's thread once daemon_ has started.
class MicroServer : public HttpServer {
 public:
  MicroServer(const HttpOptions& options, std::vector<HttpPath> paths) : options_(options) {
    for (HttpPath& path : paths) {
      std::string name = path.path;
      CHECK(paths_.emplace(std::move(name), std::move(path)).second) << "a path is there twice";
    }
  }
  ~MicroServer() override {
    if (daemon_ != nullptr) MHD_stop_daemon(daemon_);
  }
  Status Listen();
  const std::string& address() const override { return address_; }
  void StopListening() override { listening_ = false; }

 private:
  struct Decision {
    HttpAnswer answer;
    std::string location;  // Not empty: the browser goes on there, with the cookie.
  };
  struct Asked {
    std::string target;  // As it was sent.
    bool seen = false;
  };
  // The library calls these. The state of a request is an Asked.
  static MHD_Result Admit(void* self, const sockaddr*, socklen_t) {
    // The library would let a connection beyond the limit wait.
    const auto* const server = static_cast<MicroServer*>(self);
    const bool room = server->connections_ < server->options_.limits.connections;
    return room && server->listening_ ? MHD_YES : MHD_NO;
  }
  static void Count(void* self, MHD_Connection*, void**, MHD_ConnectionNotificationCode code) {
    static_cast<MicroServer*>(self)->connections_ += code == MHD_CONNECTION_NOTIFY_STARTED ? 1 : -1;
  }
  static void* Begin(void*, const char* target, MHD_Connection*) { return new Asked{target}; }
  static void End(void*, MHD_Connection*, void** asked, MHD_RequestTerminationCode) {
    delete static_cast<Asked*>(std::exchange(*asked, nullptr));
  }
  static MHD_Result Answer(void* self, MHD_Connection* connection, const char*, const char* method,
                           const char*, const char*, size_t*, void** state) {
    auto* const asked = static_cast<Asked*>(*state);
    // The first call is before the body: an answer then ends the connection, and nothing of a body
    // is read. The second is at the end of a request without a body.
    if (!std::exchange(asked->seen, true) && !HasBody(connection)) return MHD_YES;
    auto* const server = static_cast<MicroServer*>(self);
    return server->Reply(connection, server->Decide(connection, method, asked->target));
  }

  bool tls() const { return !options_.certificate.empty(); }
  bool IsOwnHost(MHD_Connection* connection) const;
  bool MayLook(MHD_Connection* connection) const;
  Decision Decide(MHD_Connection* connection, std::string_view method, std::string_view target);
  HttpAnswer NoSuchPath() const;
  MHD_Result Reply(MHD_Connection* connection, const Decision& decision) const;

  const HttpOptions options_;
  std::map<std::string, HttpPath, std::less<>> paths_;
  std::string host_;  // As it is listened at.
  std::string address_;
  // The cookie is that of this port alone, because a browser sends the cookies of a host to all of
  // its ports.
  std::string cookie_;
  LibraryLog log_;
  unsigned connections_ = 0;
  std::atomic<bool> listening_ = true;
  MHD_Daemon* daemon_ = nullptr;
};

Status MicroServer::Listen() {
  HDPS_ASSIGN_OR_RETURN(Address address, HttpAddress(options_.listen));
  HDPS_ASSIGN_OR_RETURN(const ListeningSocket socket, ListenAt(address));
  host_ = address.host;
  HDPS_ASSIGN_OR_RETURN(const std::string dialed,
                        AsOthersDial(address, address.Endpoint(socket.port)));
  address_ = (tls() ? "https" : "http") + dialed.substr(dialed.find(':'));
  cookie_ = "hdps_" + std::to_string(socket.port);

  MHD_set_panic_func(&Panic, nullptr);
  unsigned flags = MHD_USE_POLL_INTERNAL_THREAD | MHD_USE_ERROR_LOG;
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
      options_.limits.connections + 1, MHD_OPTION_PER_IP_CONNECTION_LIMIT, options_.limits.connections_of_one_address,
      MHD_OPTION_CONNECTION_MEMORY_LIMIT, options_.limits.connection_bytes, MHD_OPTION_CONNECTION_TIMEOUT,
      kHttpIdleSecondsMax, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_NOTIFY_CONNECTION, &Count,
      this, MHD_OPTION_URI_LOG_CALLBACK, &Begin, nullptr, MHD_OPTION_NOTIFY_COMPLETED, &End,
      nullptr, MHD_OPTION_ARRAY, tls_options.data(), MHD_OPTION_END);
  const std::string why = log_.EndOfStart();
  if (daemon_ != nullptr) return {};
  // The library has closed the socket, or the process ends now.
  return Status(Code::kInvalidArgument,
                "cannot serve HTTP at " + address_ + ": " + why +
                    (tls() ? "; give a certificate and its key as PEM" : ""));
}

bool MicroServer::IsOwnHost(MHD_Connection* connection) const {
  const std::optional<std::string_view> header = HeaderOf(connection, "Host");
  if (!header || CountOf(connection, "Host") != 1) return false;
  const std::optional<std::string> host = HostOf(*header);
  if (!host) return false;
  if (*host == "localhost" || *host == host_) return true;
  if (std::ranges::find(options_.names, *host) != options_.names.end()) return true;
  const MHD_ConnectionInfo* const info =
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  return info != nullptr && *host == LocalHostOf(info->connect_fd);
}

bool MicroServer::MayLook(MHD_Connection* connection) const {
  const std::optional<std::string_view> bearer = HeaderOf(connection, "Authorization");
  if (bearer && IsBearer(*bearer, options_.token)) return true;
  const std::optional<std::string_view> cookies = HeaderOf(connection, "Cookie");
  return cookies && HasCookie(*cookies, cookie_, options_.token);
}

MicroServer::Decision MicroServer::Decide(MHD_Connection* connection, std::string_view method,
                                          std::string_view target) {
  const MHD_ConnectionInfo* const header =
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
  if (header == nullptr || header->header_size > kHttpHeaderBytesMax) {
    return {Sentence(431, "request line and headers are longer than " +
                              std::to_string(kHttpHeaderBytesMax) + " bytes"),
            ""};
  }
  if (method != "GET" && method != "HEAD") return {Sentence(405, "GET and HEAD are allowed"), ""};
  if (HasBody(connection)) return {Sentence(413, "a request may not have a body"), ""};
  if (!IsOwnHost(connection)) {
    return {Sentence(421, "this name is not served here; --http_names=NAME adds one"), ""};
  }
  const HttpTarget asked = SplitTarget(target);
  const auto path = paths_.find(asked.path);
  if (path == paths_.end() || !path->second.open) {
    const std::optional<std::string> token = QueryValue(asked.query, kTokenParameter);
    const bool from_address = token && EqualInConstantTime(*token, options_.token);
    if (from_address && path != paths_.end()) {
      const std::string rest = QueryWithout(asked.query, kTokenParameter);
      return {Sentence(303, "the token is kept as a cookie"),
              path->first + (rest.empty() ? "" : "?" + rest)};
    }
    if (!from_address && !MayLook(connection))
      return {Sentence(401, "the token is missing or wrong"), ""};
  }
  if (path == paths_.end()) return {NoSuchPath(), ""};
  HttpRequest request;
  request.path = asked.path;
  request.query = [&](std::string_view name) { return QueryValue(asked.query, name).value_or(""); };
  return {path->second.answer(request), ""};
}

HttpAnswer MicroServer::NoSuchPath() const {
  std::string list;
  for (const auto& [name, path] : paths_) list += "\n" + name;
  return Sentence(404, "there is no such path; there are:" + list);
}

MHD_Result MicroServer::Reply(MHD_Connection* connection, const Decision& decision) const {
  const HttpAnswer& answer = decision.answer;
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
  if (answer.status == MHD_HTTP_METHOD_NOT_ALLOWED) add("Allow", "GET, HEAD");
  if (answer.status == MHD_HTTP_UNAUTHORIZED) add("WWW-Authenticate", "Bearer");
  if (!decision.location.empty()) {
    add("Location", decision.location);
    add("Set-Cookie", cookie_ + "=" + options_.token + "; Path=/; HttpOnly; SameSite=Strict" +
                          (tls() ? "; Secure" : ""));
  }
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
