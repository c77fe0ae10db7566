// Judges Host, token and length of the headers.
#include "common/http/visitor_rules.h"

#include <microhttpd.h>

#include <algorithm>

#include "common/http/listening_socket.h"
#include "common/http/request_headers.h"
#include "common/http/request_rules.h"

namespace hdps {
namespace {

constexpr char kTokenParameter[] = "token";

}  // namespace

VisitorRules::VisitorRules(const HttpOptions& options, const std::string& host, int port)
    : options_(options),
      own_(options.json_errors),
      host_(host),
      cookie_("hdps_" + std::to_string(port)) {}

std::optional<HttpAnswer> VisitorRules::Refuse(MHD_Connection* connection, std::string_view method,
                                               std::string_view target,
                                               const HttpPath* path) const {
  const MHD_ConnectionInfo* const header =
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
  if (header == nullptr || header->header_size > kHttpHeaderBytesMax) {
    return own_.Say(431, "request line and headers are longer than " +
                             std::to_string(kHttpHeaderBytesMax) + " bytes");
  }
  if (!IsOwnHost(connection)) {
    return own_.Say(421, "this name is not served here; --http_names=NAME adds one");
  }
  if (path == nullptr ? options_.open_404 : path->open) return std::nullopt;
  const bool post = method == "POST";
  const HttpTarget asked = SplitTarget(target);
  const std::optional<std::string> token = QueryValue(asked.query, kTokenParameter);
  if (!post && token && EqualInConstantTime(*token, options_.token)) {
    if (path == nullptr) return std::nullopt;
    return MoveTokenIntoCookie(asked, path->path);
  }
  if (MayAsk(connection, post)) return std::nullopt;
  HttpAnswer missing =
      own_.Say(401, std::string("the token is missing or wrong") +
                        (post ? "; a POST has it as \"Authorization: Bearer\" alone" : ""));
  missing.headers.emplace_back("WWW-Authenticate", "Bearer");
  return missing;
}

bool VisitorRules::IsOwnHost(MHD_Connection* connection) const {
  const std::optional<std::string_view> header = HeaderOf(connection, "Host");
  if (!header || CountOf(connection, "Host") != 1) return false;
  const std::optional<std::string> host = HostOf(*header);
  if (!host) return false;
  if (options_.any_name) return true;
  if (*host == "localhost" || *host == host_) return true;
  if (std::ranges::find(options_.names, *host) != options_.names.end()) return true;
  const MHD_ConnectionInfo* const info =
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  return info != nullptr && *host == LocalHostOf(info->connect_fd);
}

bool VisitorRules::MayAsk(MHD_Connection* connection, bool post) const {
  const std::optional<std::string_view> bearer = HeaderOf(connection, "Authorization");
  if (bearer && IsBearer(*bearer, options_.token)) return true;
  // A browser sends the cookie for pages of other ports of this host too. They cannot read the
  // answer to a GET, but a POST could change something.
  if (post) return false;
  const std::optional<std::string_view> cookies = HeaderOf(connection, "Cookie");
  return cookies && HasCookie(*cookies, cookie_, options_.token);
}

// The visitor goes on to the same target, or to `path` if the target may not stand in a header.
HttpAnswer VisitorRules::MoveTokenIntoCookie(const HttpTarget& asked,
                                             const std::string& path) const {
  HttpAnswer answer = own_.Say(303, "the token is kept as a cookie");
  const std::string rest = QueryWithout(asked.query, kTokenParameter);
  const bool plain = std::ranges::all_of(asked.path, [](char c) { return c > ' ' && c < 0x7f; });
  const char* const secure = options_.certificate.empty() ? "" : "; Secure";
  answer.headers = {
      {"Location", (plain ? std::string(asked.path) : path) + (rest.empty() ? "" : "?" + rest)},
      {"Set-Cookie",
       cookie_ + "=" + options_.token + "; Path=/; HttpOnly; SameSite=Strict" + secure}};
  return answer;
}

}  // namespace hdps
