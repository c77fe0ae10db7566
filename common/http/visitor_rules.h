// Decides whom an HTTP server answers: by the name that was asked for, and the token.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/http/http_server.h"
#include "common/http/own_answers.h"
#include "common/http/request_rules.h"

struct MHD_Connection;

namespace hdps {

// Invariant: without the token nothing but open paths is answered, nor, unless
// HttpOptions::open_404, whether a path is there. No answer has the token but the cookie for a
// visitor who gave it.
class VisitorRules {
 public:
  // `host` and `port`: where the server listens.
  VisitorRules(const HttpOptions& options, const std::string& host, int port);

  // Says why nothing of this visitor is read. `path` is what the target names; null: no such path.
  std::optional<HttpAnswer> Refuse(MHD_Connection* connection, std::string_view method,
                                   std::string_view target, const HttpPath* path) const;

 private:
  bool IsOwnHost(MHD_Connection* connection) const;
  bool MayAsk(MHD_Connection* connection, bool post) const;
  HttpAnswer MoveTokenIntoCookie(const HttpTarget& asked, const std::string& path) const;

  const HttpOptions& options_;
  const OwnAnswers own_;
  const std::string host_;
  // The cookie is that of this port alone, because a browser sends the cookies of a host to all of
  // its ports.
  const std::string cookie_;
};

}  // namespace hdps
