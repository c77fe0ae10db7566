// Tests who is answered by an HTTP server, with what, and its limits.
#include "common/http/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <string>
#include <vector>

#include "common/platform/random.h"
#include "tests/common/http/visitor.h"

namespace hdps {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kToken[] = "0123456789abcdef0123456789abcdef";

class HttpServerTest : public ::testing::Test {
 protected:
  static HttpOptions Options() {
    HttpOptions options;
    options.listen = "127.0.0.1:0";
    options.names = {"hdps.example"};
    options.token = kToken;
    return options;
  }
  void Begin(const HttpOptions& options = Options()) {
    const auto text = [](std::string body) {
      return [body](const HttpRequest& request) {
        return HttpAnswer{200, "text/plain",
                          std::make_shared<const std::string>(body + request.query("since"))};
      };
    };
    Result<std::unique_ptr<HttpServer>> server =
        HttpServer::Start(options, {{"/", false, text("page")},
                                    {"/api/v1/page", false, text("since ")},
                                    {"/healthz", true, text("well")}});
    ASSERT_TRUE(server.ok()) << server.status().message();
    server_ = *std::move(server);
    const std::string& address = server_->address();
    port_ = std::atoi(address.substr(address.rfind(':') + 1).c_str());
  }
  // Returns a request with a right Host and `headers`, each ended by \r\n.
  static std::string Asking(const std::string& target, const std::string& headers = kBearer,
                            const std::string& method = "GET") {
    return method + " " + target + " HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n";
  }
  VisitorAnswer Ask(const std::string& bytes) {
    Visitor visitor(port_);
    EXPECT_TRUE(visitor.Send(bytes));
    return visitor.Read();
  }
  static inline const std::string kBearer = std::string("Authorization: Bearer ") + kToken + "\r\n";

  std::unique_ptr<HttpServer> server_;
  int port_ = 0;
};

TEST_F(HttpServerTest, AnswersAPathAndItsQuery) {
  Begin();
  EXPECT_THAT(server_->address(), ContainsRegex("^http://127.0.0.1:[0-9]+$"));
  const VisitorAnswer page = Ask(Asking("/"));
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.body, "page");
  EXPECT_THAT(page.headers, HasSubstr("Content-Type: text/plain\r\n"));
  EXPECT_THAT(page.headers, HasSubstr("Cache-Control: no-store\r\n"));
  EXPECT_EQ(Ask(Asking("/api/v1/page?a=1&since=%34+x")).body, "since 4 x");
  EXPECT_EQ(Ask(Asking("/healthz", "")).body, "well");
}

TEST_F(HttpServerTest, ForbidsOthersToShowOrReadItsPages) {
  Begin();
  for (const std::string& headers :
       {Ask(Asking("/")).headers, Ask(Asking("/", "")).headers, Ask(Asking("/none")).headers}) {
    EXPECT_THAT(headers, HasSubstr("Content-Security-Policy: default-src 'self';"));
    EXPECT_THAT(headers, HasSubstr("X-Content-Type-Options: nosniff\r\n"));
    EXPECT_THAT(headers, HasSubstr("X-Frame-Options: DENY\r\n"));
    EXPECT_THAT(headers, HasSubstr("Referrer-Policy: no-referrer\r\n"));
    EXPECT_THAT(headers, Not(HasSubstr("Access-Control")));
  }
}

TEST_F(HttpServerTest, NamesItsPathsWhereThereIsNone) {
  Begin();
  const VisitorAnswer none = Ask(Asking("/Metrics"));
  EXPECT_EQ(none.status, 404);
  EXPECT_EQ(none.body, "there is no such path; there are:\n/\n/api/v1/page\n/healthz\n");
  EXPECT_EQ(Ask(Asking("/healthz/")).status, 404);
  EXPECT_EQ(Ask(Asking("/none", "")).status, 401);
}

TEST_F(HttpServerTest, TellsAStrangerOfPathsOnlyWhereItMay) {
  HttpOptions options = Options();
  options.open_404 = true;
  Begin(options);
  for (const char* method : {"GET", "POST"}) {
    EXPECT_EQ(Ask(Asking("/Metrics", "", method)).status, 404) << method;
    EXPECT_EQ(Ask(Asking("/api/v1/page", "", method)).status, 401) << method;
  }
  EXPECT_THAT(Ask(Asking("/Metrics", "")).body, HasSubstr("there are:\n/\n/api/v1/page\n"));
  EXPECT_EQ(Ask("GET /none HTTP/1.1\r\nHost: evil.example\r\n\r\n").status, 421);
}

TEST_F(HttpServerTest, KnowsGetAndHeadAlone) {
  Begin();
  Visitor visitor(port_);
  ASSERT_TRUE(visitor.Send(Asking("/", kBearer, "HEAD") + Asking("/healthz")));
  const VisitorAnswer head = visitor.Read(/*with_body=*/false);
  EXPECT_EQ(head.status, 200);
  EXPECT_THAT(head.headers, HasSubstr("Content-Length: 4\r\n"));
  EXPECT_EQ(visitor.Read().body, "well");  // No body lay between.
  for (const std::string method : {"POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "get"}) {
    const VisitorAnswer answer = Ask(Asking("/", kBearer, method));
    EXPECT_EQ(answer.status, 405) << method;
    EXPECT_THAT(answer.headers, HasSubstr("Allow: GET, HEAD\r\n"));
  }
}

TEST_F(HttpServerTest, TakesNoBody) {
  Begin();
  EXPECT_EQ(Ask(Asking("/", kBearer + "Content-Length: 5\r\n") + "hello").status, 413);
  EXPECT_EQ(Ask(Asking("/", kBearer + "Transfer-Encoding: chunked\r\n") + "0\r\n\r\n").status, 413);
  EXPECT_EQ(Ask(Asking("/", kBearer + "Content-Length: 0\r\n")).status, 200);
  EXPECT_EQ(Ask(Asking("/", kBearer + "Content-Length: -1\r\n")).status, 400);
}

TEST_F(HttpServerTest, WantsTheTokenAndGivesNoHint) {
  Begin();
  const std::string wrong = std::string(kToken).substr(1) + "0";
  std::vector<std::string> headers = {
      "",
      "Authorization: Bearer " + wrong + "\r\n",
      "Authorization: Bearer\r\n",
      "Authorization: Basic " + std::string(kToken) + "\r\n",
      "Authorization: Bearer " + std::string(kToken) + "0\r\n",
      "Cookie: hdps_" + std::to_string(port_) + "=" + wrong + "\r\n",
      "Cookie: hdps_1=" + std::string(kToken) + "\r\n"};
  std::string body;
  for (const std::string& given : headers) {
    const VisitorAnswer answer = Ask(Asking("/", given));
    EXPECT_EQ(answer.status, 401) << given;
    EXPECT_THAT(answer.headers, HasSubstr("WWW-Authenticate: Bearer\r\n"));
    if (body.empty()) body = answer.body;
    EXPECT_EQ(answer.body, body);
  }
  EXPECT_EQ(Ask(Asking("/?token=" + wrong, "")).body, body);
  // For half a quote the library takes a length below 0, and refuses it as too long.
  EXPECT_EQ(Ask(Asking("/", "Cookie: a=\"\r\n")).status, 431);
  EXPECT_EQ(Ask(Asking("/", "authorization: bearer " + std::string(kToken) + "\r\n")).status, 200);
}

TEST_F(HttpServerTest, MovesTheTokenFromTheAddressIntoACookie) {
  Begin();
  const VisitorAnswer answer =
      Ask(Asking("/api/v1/page?a=%20b&token=" + std::string(kToken) + "&since=7", ""));
  EXPECT_EQ(answer.status, 303);
  EXPECT_THAT(answer.headers, HasSubstr("Location: /api/v1/page?a=%20b&since=7\r\n"));
  const std::string cookie = "hdps_" + std::to_string(port_) + "=" + kToken;
  EXPECT_THAT(answer.headers,
              HasSubstr("Set-Cookie: " + cookie + "; Path=/; HttpOnly; SameSite=Strict\r\n"));
  EXPECT_THAT(answer.body, Not(HasSubstr(kToken)));
  EXPECT_EQ(Ask(Asking("/", "Cookie: b=1; " + cookie + "\r\n")).body, "page");
  EXPECT_EQ(Ask(Asking("/none?token=" + std::string(kToken), "")).status, 404);
}

TEST_F(HttpServerTest, AnswersToItsOwnNamesAlone) {
  Begin();
  const auto status_at = [&](const std::string& host) {
    return Ask("GET / HTTP/1.1\r\nHost: " + host + "\r\n" + kBearer + "\r\n").status;
  };
  for (const std::string host : {"localhost", "LOCALHOST:1", "127.0.0.1", "127.0.0.1:9000",
                                 "hdps.example", "HDPS.example:80"}) {
    EXPECT_EQ(status_at(host), 200) << host;
  }
  for (const std::string host :
       {"evil.example", "127.0.0.2", "hdps.example.evil", "localhost.", "127.0.0.1:a", "[::1]", "",
        "localhost@evil", "localhost, evil", "127.0.0.1:80:80", "2130706433"}) {
    EXPECT_EQ(status_at(host), 421) << host;
  }
  EXPECT_EQ(Ask("GET / HTTP/1.0\r\n" + kBearer + "\r\n").status, 421);
  EXPECT_EQ(Ask("GET / HTTP/1.1\r\n" + kBearer + "\r\n").status, 400);
  EXPECT_EQ(Ask(Asking("/", kBearer + "Host: evil.example\r\n")).status, 421);
  // A probe of health has no token, but a page of others may not see even that.
  EXPECT_EQ(Ask("GET /healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n").status, 421);
}

TEST_F(HttpServerTest, AnswersToAnyNameBehindAGateway) {
  HttpOptions options = Options();
  options.any_name = true;
  Begin(options);
  EXPECT_EQ(Ask("GET / HTTP/1.1\r\nHost: model.example\r\n" + kBearer + "\r\n").status, 200);
  EXPECT_EQ(Ask("GET / HTTP/1.1\r\nHost: model.example\r\n\r\n").status, 401);
  EXPECT_EQ(Ask("GET / HTTP/1.1\r\nHost: a@b\r\n" + kBearer + "\r\n").status, 421);
}

TEST_F(HttpServerTest, AnswersAtTheAddressThatAConnectionCameTo) {
  HttpOptions options = Options();
  options.listen = "0.0.0.0:0";
  Begin(options);
  EXPECT_EQ(Ask("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n" + kBearer + "\r\n").status, 200);
  EXPECT_EQ(Ask("GET / HTTP/1.1\r\nHost: 10.1.2.3\r\n" + kBearer + "\r\n").status, 421);
}

TEST_F(HttpServerTest, RefusesLongHeaders) {
  Begin();
  const size_t bare = Asking("/", kBearer + "A: \r\n").size();
  const auto status_of = [&](size_t bytes) {
    return Ask(Asking("/", kBearer + "A: " + std::string(bytes - bare, 'a') + "\r\n")).status;
  };
  EXPECT_EQ(status_of(kHttpHeaderBytesMax - 64), 200);
  EXPECT_EQ(status_of(kHttpHeaderBytesMax + 64), 431);
  EXPECT_EQ(status_of(HttpLimits().connection_bytes / 2), 431);
  EXPECT_EQ(Ask(Asking("/" + std::string(kHttpHeaderBytesMax, 'a'))).status, 431);
  std::string many;
  for (int i = 0; i < 2000; ++i) many += "a:\r\n";
  EXPECT_EQ(Ask(Asking("/", kBearer + many)).status, 431);
}

TEST_F(HttpServerTest, HoldsNoMoreOfARequestThanAConnectionMay) {
  Begin();
  // Cut off by the server: it may close before all was sent, and the answer may be lost by that.
  for (const std::string& endless :
       {Asking("/" + std::string(4 * HttpLimits().connection_bytes, 'a')),
        Asking("/", "A: " + std::string(4 * HttpLimits().connection_bytes, 'a') + "\r\n")}) {
    Visitor visitor(port_);
    visitor.Send(endless);
    const int status = visitor.Read().status;
    EXPECT_TRUE(status == 431 || status == 414 || status == 0) << status;
    EXPECT_TRUE(visitor.IsClosed());
  }
  EXPECT_EQ(Ask(Asking("/")).status, 200);
}

TEST_F(HttpServerTest, ClosesConnectionsBeyondItsLimits) {
  Begin();
  std::deque<Visitor> visitors;
  const auto is_let_in = [&](const std::string& from) {
    Visitor& visitor = visitors.emplace_back(port_, from);
    return visitor.connected() && visitor.Send(Asking("/healthz", "")) &&
           visitor.Read().status == 200;
  };
  for (unsigned host = 0; host < HttpLimits().connections / HttpLimits().connections_of_one_address;
       ++host) {
    const std::string from = "127.0.0." + std::to_string(2 + host);
    for (unsigned i = 0; i < HttpLimits().connections_of_one_address; ++i)
      EXPECT_TRUE(is_let_in(from));
    EXPECT_FALSE(is_let_in(from)) << "one more of the same address";
    visitors.pop_back();
  }
  EXPECT_FALSE(is_let_in("127.0.0.9")) << "one more in all";
  visitors.pop_back();
  // Room for another: the server notices the end of a connection before it lets the next one in.
  visitors.pop_front();
  bool again = false;
  for (int turn = 0; turn < 10000 && !again; ++turn) {
    again = is_let_in("127.0.0.9");
    if (!again) visitors.pop_back();
  }
  EXPECT_TRUE(again);
}

TEST_F(HttpServerTest, ClosesAConnectionWithoutProgress) {
  Begin();
  Visitor silent(port_), half(port_);
  ASSERT_TRUE(half.Send("GET / HT"));
  EXPECT_TRUE(silent.IsClosed());
  EXPECT_TRUE(half.IsClosed());
}

TEST_F(HttpServerTest, AnswersPipelinedAndOutlivesCutRequests) {
  Begin();
  Visitor visitor(port_);
  std::string all;
  for (int i = 0; i < 50; ++i) all += Asking("/api/v1/page?since=" + std::to_string(i));
  ASSERT_TRUE(visitor.Send(all));
  for (int i = 0; i < 50; ++i) EXPECT_EQ(visitor.Read().body, "since " + std::to_string(i));
  const std::string whole = Asking("/?a=b%20c");
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    Visitor cut(port_);
    ASSERT_TRUE(cut.Send(whole.substr(0, bytes)));
    cut.EndSending();
    const int status = cut.Read().status;
    EXPECT_TRUE(status == 0 || status == 400) << status << " after " << bytes << " bytes";
  }
  EXPECT_EQ(Ask(whole).status, 200);
}

TEST_F(HttpServerTest, SaysWhyItCannotListen) {
  const auto why = [](const std::string& listen) {
    HttpOptions options = Options();
    options.listen = listen;
    const auto server = HttpServer::Start(options, {});
    EXPECT_FALSE(server.ok()) << listen;
    EXPECT_EQ(server.status().code(), Code::kInvalidArgument);
    return server.status().message();
  };
  Begin();
  EXPECT_THAT(why("127.0.0.1:" + std::to_string(port_)),
              HasSubstr("is in use by this process; choose another port or 0"));
  EXPECT_THAT(why("192.0.2.1:0"), HasSubstr("belongs to no network interface of this machine"));
  for (const std::string text : {"", "8080", "127.0.0.1", "ipc:///tmp/a", "tcp://127.0.0.1:0",
                                 "127.0.0.1:70000", "127.0.0.1:1+2", "a b:1"}) {
    EXPECT_THAT(why(text), HasSubstr("\"" + text + "\" is no address for HTTP; write HOST:PORT"));
  }
  EXPECT_THAT(why("no-such-host.invalid:0"),
              HasSubstr("host \"no-such-host.invalid\" is not known"));
}

TEST_F(HttpServerTest, LeavesItsPortWhenItEnds) {
  Begin();
  HttpOptions again = Options();
  again.listen = "127.0.0.1:" + std::to_string(port_);
  EXPECT_EQ(Ask(Asking("/")).status, 200);
  server_.reset();
  Begin(again);
  EXPECT_EQ(Ask(Asking("/")).status, 200);
}

TEST(NewToken, HasEachBitDrawn) {
  std::string all, any = std::string(32, '0');
  const auto value = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  int ones[128] = {};
  constexpr int kDrawn = 256;
  for (int i = 0; i < kDrawn; ++i) {
    const std::string token = NewToken();
    ASSERT_THAT(token, ContainsRegex("^[0-9a-f]{32}$"));
    for (int bit = 0; bit < 128; ++bit) {
      ones[bit] += value(token[static_cast<size_t>(bit / 4)]) >> bit % 4 & 1;
    }
  }
  // A bit that is drawn is never or always set in 256 tokens with probability 2^-255.
  for (const int count : ones) EXPECT_TRUE(count > 0 && count < kDrawn);
}

}  // namespace
}  // namespace hdps
