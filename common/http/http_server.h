// Answers HTTP requests of browsers and monitoring on one thread of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/platform/monotonic_clock.h"

namespace hdps {

// Limits of a server. A connection beyond the first two is closed at once.
struct HttpLimits {
  unsigned connections = 64;
  unsigned connections_of_one_address = 16;
  // Memory for the requests of a connection. TLS needs more than 32 KiB. A body comes in pieces of
  // at most so many bytes.
  size_t connection_bytes = 64 << 10;
  size_t body_bytes = 0;    // Of one POST; beyond it the answer is 413.
  size_t bodies_bytes = 0;  // Of all POSTs under way together; beyond it the answer is 503.
};
inline constexpr unsigned kHttpIdleSecondsMax = 10;  // A connection without progress is closed.
// Returns the time within which a body of so many bytes comes: 10 s, and what its bytes take at
// 1 MiB a second. Beyond it the answer is 408 and the connection is closed, so that bodies which
// make little progress cannot hold the room of all bodies for ever.
constexpr int64_t HttpBodyMsMax(uint64_t bytes) {
  constexpr uint64_t kBytesPerMs = (1 << 20) / 1000;
  return 10'000 + static_cast<int64_t>(bytes / kBytesPerMs);
}
// The request line and the headers of a request have at most so many bytes; beyond them the answer
// is 431.
inline constexpr size_t kHttpHeaderBytesMax = 8 << 10;

struct HttpRequest {
  std::string_view path;  // Without the query.
  // Returns the value of a query parameter; empty if it is not there.
  std::function<std::string(std::string_view name)> query;
};

// A request with a body, which outlives the call that takes it.
struct HttpPost {
  std::string path;  // Without the query, as it was sent: "%3A" is not ':'.
  // Names in lower case, without those that have the visitor's token. Of a name that is there
  // twice, the first counts.
  std::map<std::string, std::string, std::less<>> headers;
  std::string body;
};

struct HttpAnswer {
  int status = 200;
  std::string type = "application/json";  // Content-Type.
  // Shared, because a page is the same for all who ask.
  std::shared_ptr<const std::string> body;
  bool cacheable = false;  // A browser may keep it; otherwise it is told not to.
  std::vector<std::pair<std::string, std::string>> headers = {};  // Further ones.
};

// Sends the answer to a request: from any thread, at once or later. The first call counts, and does
// nothing if the visitor or the server has gone. If the last copy goes uncalled, the answer is 500.
using HttpReply = std::function<void(HttpAnswer)>;

// One path of a server. Requests for paths that are not there get 404 with the list of those that
// are. A method that a path does not have gets 405.
struct HttpPath {
  std::string path;   // One that ends with '/' answers for all below it too, except for "/".
  bool open = false;  // Answered without a token, as probes of health have none.
  // For GET and HEAD; null: the path has neither. Called on the HTTP thread, and must not wait for
  // anybody.
  std::function<HttpAnswer(const HttpRequest&)> answer;
  // For POST; null: the path takes none. Called on the HTTP thread when the whole body is here, and
  // must not wait for anybody. The connection waits for the reply without time limit. The body
  // counts among those under way until its answer is sent.
  std::function<void(HttpPost, HttpReply)> take = nullptr;
};

struct HttpOptions {
  std::string listen;                   // HOST:PORT, where port 0 is any free one.
  std::vector<std::string> names = {};  // Further values of the Host header that are right.
  bool any_name = false;                // All values are: a gateway in front has names of its own.
  std::string token;                    // What a visitor must know; not empty.
  std::string certificate, key;         // PEM texts for TLS 1.2 and later; empty: no TLS.
  HttpLimits limits = {};
  bool json_errors = false;  // The server's own errors are {"error": "..."}; else lines of text.
  // A visitor without the token hears that a path is not there, and which paths are. Otherwise
  // the answer is 401, as for paths that are there.
  bool open_404 = false;
  // Clock of the time limits of bodies, which outlives the server; null: the system's.
  MonotonicClock* clock = nullptr;
};

// Errors: kInvalidArgument if `listen` is not HOST:PORT. Sets `reached` if another machine can
// reach the address.
Status CheckHttpAddress(const std::string& listen, bool* reached);

// Invariant: the thread that answers never waits for a role, and no role waits for it. Limits hold
// for all connections together and for each. A visitor is answered if the Host header names this
// server, so that no page of others reads it through a name of their own, and if the token came
// as "Authorization: Bearer", or for a GET as a cookie or as ?token= in the address. The last sets
// the cookie and sends the browser to the same address without the token.
class HttpServer {
 public:
  // Errors: kInvalidArgument names what is wrong with the address, the port or the certificate,
  // and who has the port where that can be seen.
  static Result<std::unique_ptr<HttpServer>> Start(const HttpOptions& options,
                                                   std::vector<HttpPath> paths);
  virtual ~HttpServer() = default;

  // "http://127.0.0.1:8080"
  virtual const std::string& address() const = 0;
  // Takes no more connections. Those that there are go on, and each ends with its next answer.
  virtual void StopListening() = 0;
  // Waits until no POST is under way, each from its headers to the last byte of its answer. Returns
  // false after so long. The end of the server drops what is under way then.
  virtual bool AwaitPosts(int64_t timeout_ms) = 0;
};

}  // namespace hdps
