// Answers HTTP requests of browsers and monitoring on one thread of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/status.h"

namespace hdps {

struct HttpRequest {
  std::string_view path;  // Without the query.
  // Returns the value of a query parameter; empty if it is not there.
  std::function<std::string(std::string_view name)> query;
};

struct HttpAnswer {
  int status = 200;
  std::string type = "application/json";  // Content-Type.
  // Shared, because a page is the same for all who ask.
  std::shared_ptr<const std::string> body;
  bool cacheable = false;  // A browser may keep it; otherwise it is told not to.
};

// One path of a server. Requests for paths that are not there get 404 with the list of those that
// are.
struct HttpPath {
  std::string path;
  bool open = false;  // Answered without a token, as probes of health have none.
  // Called on the HTTP thread, and must not wait for anybody.
  std::function<HttpAnswer(const HttpRequest&)> answer;
};

// The flags --http, --http_names, --http_token_file, --http_cert, --http_key and --insecure.
struct HttpOptions {
  std::string listen;                   // HOST:PORT; port 0: any free one. Empty: not at all.
  std::vector<std::string> names = {};  // Further values of the Host header that are right.
  std::string token;                    // Drawn by the caller, or read from --http_token_file.
  std::string certificate, key;         // PEM texts for TLS; empty: none.
};

// Invariant: the thread that answers never waits for a role, and no role waits for it. Limits hold
// for all connections together and for each.
class HttpServer {
 public:
  // Errors: kInvalidArgument names what is wrong with the address, the port or the certificate,
  // and who has the port where that can be seen.
  static Result<std::unique_ptr<HttpServer>> Start(const HttpOptions& options,
                                                   std::vector<HttpPath> paths);
  virtual ~HttpServer() = default;

  // "http://127.0.0.1:8080"
  virtual const std::string& address() const = 0;
};

}  // namespace hdps
