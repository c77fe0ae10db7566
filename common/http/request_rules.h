// Reads the parts of a request that decide who may look and what is read of a body: its target,
// Host, token, cookie and length.
//
// libmicrohttpd decodes these too, but its values of cookies may have wrong lengths, a redirect
// needs the query as it was sent, and of two lengths that disagree it takes one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hdps {

// The target of a request line as it was sent: "/api/v1/page?since=4" without the '?'.
struct HttpTarget {
  std::string_view path, query;
};
HttpTarget SplitTarget(std::string_view target);

// Returns the first value of a query parameter, with %HH and '+' decoded. Returns nothing if it is
// not there or its escapes are malformed.
std::optional<std::string> QueryValue(std::string_view query, std::string_view name);
// Returns the query as it was sent without that parameter. Returns an empty query if it has a
// character that may not stand in a Location header.
std::string QueryWithout(std::string_view query, std::string_view name);

// Returns the host of a Host header in lower case, without its port. Returns nothing if it is not
// HOST or HOST:PORT. An IPv6 address is not a host here, because none is listened at.
std::optional<std::string> HostOf(std::string_view header);

// Is true if the header is "Bearer TOKEN" with this token.
bool IsBearer(std::string_view header, std::string_view token);
// Is true if a Cookie header has a cookie of this name with this value.
bool HasCookie(std::string_view header, std::string_view name, std::string_view value);

// How the headers of a request say where its body ends.
struct BodyFrame {
  bool chunked = false;
  uint64_t bytes = 0;  // 0 if chunked.

  bool empty() const { return !chunked && bytes == 0; }
  bool operator==(const BodyFrame&) const = default;
};
// Takes the values of Content-Length and Transfer-Encoding where they are there. Returns nothing if
// the length is no number of bytes, if the coding is not "chunked", or if both are there: a proxy
// could then see the end of the request elsewhere (RFC 9112, section 6.3).
std::optional<BodyFrame> BodyFrameOf(std::optional<std::string_view> length,
                                     std::optional<std::string_view> coding);

// Returns the text with A to Z in lower case.
std::string InLowerCase(std::string_view text);

// Compares in a time that depends on the lengths alone.
bool EqualInConstantTime(std::string_view a, std::string_view b);

}  // namespace hdps
