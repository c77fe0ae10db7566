// Fuzzes what hdps reads of an HTTP request by itself: target, Host, token, cookie, and where its
// body ends.
#include <glog/logging.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/http/request_rules.h"
#include "tests/fuzz/target.h"

namespace hdps::fuzz {
namespace {

constexpr std::string_view kToken = "0123456789abcdef", kCookie = "hdps_80";

// A query without the token has no token, and keeps the other parameters.
void CheckQuery(std::string_view query) {
  const std::string rest = QueryWithout(query, "token");
  CHECK(std::ranges::all_of(rest, [](char c) { return c > ' ' && c < 0x7f; }));
  CHECK(!QueryValue(rest, "token"));
  CHECK_EQ(QueryWithout(rest, "token"), rest);
  CHECK_LE(rest.size(), query.size());
  if (!rest.empty()) CHECK(QueryValue(rest, "since") == QueryValue(query, "since"));
  const std::optional<std::string> since = QueryValue(query, "since");
  CHECK(!since || since->size() <= query.size());
}

void CheckTokens(std::string_view text) {
  CHECK(EqualInConstantTime(text, text));
  CHECK_EQ(EqualInConstantTime(text, kToken), text == kToken);
  const bool inside = text.find(kToken) != std::string_view::npos;
  CHECK(inside || !IsBearer(text, kToken));
  CHECK(inside || !HasCookie(text, kCookie, kToken));
  const std::string pair = std::string(kCookie) + "=" + std::string(kToken);
  CHECK(HasCookie(pair + ";" + std::string(text), kCookie, kToken));
  CHECK(HasCookie(std::string(text) + "; " + pair, kCookie, kToken));
}

// A request with both headers is refused, because a proxy might believe the other one.
void CheckFrame(std::string_view length, std::string_view coding) {
  const std::optional<BodyFrame> by_length = BodyFrameOf(length, std::nullopt);
  if (by_length) {
    CHECK(!by_length->chunked);
    CHECK(BodyFrameOf(std::to_string(by_length->bytes), std::nullopt) == by_length);
    CHECK(length.find_first_not_of("0123456789 \t") == std::string_view::npos);
  }
  const std::optional<BodyFrame> by_coding = BodyFrameOf(std::nullopt, coding);
  CHECK(!by_coding || (by_coding->chunked && by_coding->bytes == 0));
  CHECK(!BodyFrameOf(length, coding));
}

// Lines: the target, the Host, the token, the cookies, the Content-Length and the Transfer-Encoding
// of a request.
Verdict RunRequest(std::string_view bytes) {
  std::vector<std::string_view> lines;
  for (int i = 0; i < 6; ++i) {
    const size_t end = std::min(bytes.find('\n'), bytes.size());
    lines.push_back(bytes.substr(0, end));
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
  }
  const HttpTarget target = SplitTarget(lines[0]);
  CHECK_LE(target.path.size() + target.query.size(), lines[0].size());
  CHECK(target.path.find('?') == std::string_view::npos);
  CheckQuery(target.query);
  CheckTokens(lines[2]);
  CheckTokens(lines[3]);
  CheckFrame(lines[4], lines[5]);
  const std::optional<std::string> host = HostOf(lines[1]);
  if (host) {
    CHECK(HostOf(*host) == *host && HostOf(*host + ":80") == *host);
    CHECK(host->find_first_of(":/@ ,") == std::string::npos);
  }
  const bool known = IsBearer(lines[2], kToken) || HasCookie(lines[3], kCookie, kToken) ||
                     QueryValue(target.query, "token") == kToken;
  return host && known ? Verdict::kAccepted : Verdict::kRefused;
}
std::vector<std::string> RequestSeeds() {
  const std::string token(kToken);
  return {"/api/v1/page?since=4\nlocalhost:80\nBearer " + token,
          "/?a=%20&token=" + token + "&since=%2\n127.0.0.1\n\n",
          "/metrics?since=1&&since=2#x\nHOST.example\n\na=\"1\"; hdps_80=" + token,
          "/?%74oken=" + token + "\n[::1]:80\nbearer  " + token + " \nhdps_80",
          "*\n:\nBasic\n;=;",
          "/\nlocalhost\nBearer " + token + "\n\n 0018\nchunked",
          "/\nlocalhost\nBearer " + token + "\n\n18446744073709551615\ngzip, chunked"};
}

const AddTarget request({"http", RunRequest, RequestSeeds});

}  // namespace
}  // namespace hdps::fuzz
