// Tests replies that come later and from other threads, paths and methods of POSTs, and the end of
// a server with requests at hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "common/process/command_line.h"
#include "tests/common/http/post_server.h"

namespace hdps {
namespace {

using ::testing::HasSubstr;

class HttpReplyTest : public PostServerTest {
 protected:
  // Lets `count` visitors ask, and returns what they wait for in the order of the visitors.
  std::vector<OwedReply> LetAsk(size_t count) {
    while (visitors_.size() < count) visitors_.emplace_back(port_);
    for (size_t i = 0; i < count; ++i) {
      EXPECT_TRUE(visitors_[i].Send(Post("/late", std::to_string(i))));
    }
    std::vector<OwedReply> owed(count);
    for (size_t i = 0; i < count; ++i) {
      OwedReply one = owed_.Next();
      const size_t visitor = std::stoul(one.post.body);
      owed[visitor] = std::move(one);
    }
    return owed;
  }

  std::deque<Visitor> visitors_;
};

TEST_F(HttpReplyTest, ComesFromAnyThreadInAnyOrder) {
  HttpOptions options = Options();
  options.limits.connections_of_one_address = 64;
  Begin(options);
  constexpr size_t kAsked = 64, kThreads = 4;
  for (int round = 0; round < 20; ++round) {
    std::vector<OwedReply> owed = LetAsk(kAsked);
    std::vector<std::thread> threads;
    for (size_t thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&owed, thread] {
        for (size_t i = kAsked - kThreads + thread; i < kAsked; i -= kThreads) {
          owed[i].reply(TextAnswer("reply " + owed[i].post.body));
          owed[i].reply(TextAnswer("only the first counts"));
        }
      });
    }
    for (size_t i = 0; i < kAsked; ++i) {
      EXPECT_EQ(visitors_[i].Read().body, "reply " + std::to_string(i));
    }
    for (std::thread& thread : threads) thread.join();
  }
}

TEST_F(HttpReplyTest, KeepsTheOrderOfPipelinedRequests) {
  Begin();
  Visitor visitor(port_);
  constexpr int kAsked = 100;
  std::thread answers([this] {
    for (int i = 0; i < kAsked; ++i) {
      const OwedReply owed = owed_.Next();
      owed.reply(TextAnswer("reply " + owed.post.body));
    }
  });
  std::string all;
  for (int i = 0; i < kAsked; ++i) all += Post("/late", std::to_string(i));
  ASSERT_TRUE(visitor.Send(all));
  for (int i = 0; i < kAsked; ++i) EXPECT_EQ(visitor.Read().body, "reply " + std::to_string(i));
  answers.join();
}

TEST_F(HttpReplyTest, OfAThousandConnectionsAtOnce) {
  AllowManyFiles();
  HttpOptions options = Options();
  options.limits = {1024, 1024, 128 << 10, 1000, 1 << 20};
  Begin(options);
  constexpr size_t kAsked = 1000;
  std::vector<OwedReply> owed = LetAsk(kAsked);
  for (size_t i = 0; i < kAsked; ++i) owed[i].reply(TextAnswer("reply " + owed[i].post.body));
  for (size_t i = 0; i < kAsked; ++i) {
    ASSERT_EQ(visitors_[i].Read().body, "reply " + std::to_string(i));
  }
}

TEST_F(HttpReplyTest, MayComeAfterTheVisitorOrTheServerHasGone) {
  Begin();
  std::vector<OwedReply> owed = LetAsk(2);
  visitors_.pop_front();
  owed[0].reply(TextAnswer("nobody is there"));
  EXPECT_EQ(Ask(Post("/echo", "a")).body, "a");
  server_.reset();
  owed[1].reply(TextAnswer("nothing is there"));
  const VisitorAnswer last = visitors_.front().Read();
  EXPECT_TRUE(last.status == 0 || last.status == 503) << last.status;
  // Replies that are given up when the server has gone do no harm either.
  Begin();
  visitors_.clear();
  owed = LetAsk(1);
  server_.reset();
  owed.clear();
}

TEST_F(HttpReplyTest, ThatIsGivenUpIsAnError) {
  Begin();
  std::vector<OwedReply> owed = LetAsk(2);
  const HttpReply copy = owed[1].reply;
  owed.clear();
  const VisitorAnswer answer = visitors_[0].Read();
  EXPECT_EQ(answer.status, 500);
  EXPECT_EQ(answer.body, "the request was given up without an answer\n");
  copy(TextAnswer("a copy is a reply"));
  EXPECT_EQ(visitors_[1].Read().body, "a copy is a reply");
}

TEST_F(HttpReplyTest, HasNoTimeLimitButABodyHas) {
  Begin();
  const std::vector<OwedReply> owed = LetAsk(1);
  Visitor slow(port_);
  ASSERT_TRUE(slow.Send(Head("/echo", "Content-Length: 5\r\n") + "hel"));
  EXPECT_TRUE(slow.IsClosed());
  owed[0].reply(TextAnswer("late"));
  EXPECT_EQ(visitors_[0].Read().body, "late");
}

TEST_F(HttpReplyTest, KnowsTheHeadersButNotTheToken) {
  Begin();
  Visitor visitor(port_);
  ASSERT_TRUE(visitor.Send(
      Head("/late?a=1", "X-Length: 7\r\nx-length: 8\r\nCookie: a=b\r\nContent-Length: 1\r\n") +
      "1"));
  const OwedReply owed = owed_.Next();
  EXPECT_EQ(owed.post.path, "/late");
  EXPECT_EQ(owed.post.headers.at("x-length"), "7");
  EXPECT_EQ(owed.post.headers.count("cookie"), 0u);
  EXPECT_EQ(owed.post.headers.count("authorization"), 0u);
  HttpAnswer answer = TextAnswer("2");
  answer.headers = {{"X-Length", "9"}};
  owed.reply(answer);
  EXPECT_THAT(visitor.Read().headers, HasSubstr("X-Length: 9\r\n"));
}

TEST_F(HttpReplyTest, IsThatOfTheLongestPath) {
  Begin();
  EXPECT_EQ(Ask(Post("/sub/a", "x")).body, "x");
  EXPECT_EQ(Ask(Post("/sub/deep", "x")).body, "x");
  EXPECT_EQ(Ask(Post("/sub/deep/", "x")).body, "deep /sub/deep/");
  EXPECT_EQ(Ask(Post("/sub/deep/a%2Fb//c?d=/e", "x")).body, "deep /sub/deep/a%2Fb//c");
  EXPECT_EQ(Ask(Post("/sub", "x")).status, 404);
  EXPECT_EQ(Ask(Post("/echo/", "x")).status, 404);
  EXPECT_EQ(Ask(Post("//sub/a", "x")).status, 404);
  const std::string token = "?token=" + std::string(kToken);
  EXPECT_THAT(Ask("GET /sub/a/b" + token + " HTTP/1.1\r\nHost: localhost\r\n\r\n").headers,
              HasSubstr("Location: /sub/a/b\r\n"));
}

TEST_F(HttpReplyTest, NamesTheMethodsOfAPath) {
  Begin();
  const auto expect = [&](const std::string& method, const std::string& path,
                          const std::string& allowed) {
    Visitor visitor(port_);
    EXPECT_TRUE(visitor.Send(method + " " + path + " HTTP/1.1\r\nHost: localhost\r\n" + kBearer +
                             "Content-Length: 0\r\n\r\n"));
    const VisitorAnswer answer = visitor.Read(/*with_body=*/false);
    EXPECT_EQ(answer.status, 405) << method << path;
    EXPECT_THAT(answer.headers, HasSubstr("Allow: " + allowed + "\r\n"));
  };
  expect("POST", "/page", "GET, HEAD");
  expect("GET", "/echo", "POST");
  expect("HEAD", "/echo", "POST");
  expect("PUT", "/sub/a", "GET, HEAD, POST");
  // The connection goes on behind a short body that nobody wants.
  Visitor visitor(port_);
  ASSERT_TRUE(visitor.Send(Post("/page", "a") + Post("/none", "b") + Post("/echo", "c")));
  EXPECT_EQ(visitor.Read().status, 405);
  EXPECT_EQ(visitor.Read().status, 404);
  EXPECT_EQ(visitor.Read().body, "c");
}

TEST_F(HttpReplyTest, OfTheServerItselfIsJsonWhereAsked) {
  HttpOptions options = Options();
  options.json_errors = true;
  Begin(options);
  const auto error = [&](const std::string& request, int status) {
    const VisitorAnswer answer = Ask(request);
    EXPECT_EQ(answer.status, status);
    EXPECT_THAT(answer.headers, HasSubstr("Content-Type: application/json\r\n"));
    return answer.body;
  };
  EXPECT_EQ(error(Post("/none", "a"), 404),
            "{\"error\":\"there is no such path; there are: /echo /late /open /page /sub/ "
            "/sub/deep/\"}");
  EXPECT_EQ(error("POST /echo HTTP/1.1\r\nHost: localhost\r\n\r\n", 401),
            "{\"error\":\"the token is missing or wrong; a POST has it as \\\"Authorization: "
            "Bearer\\\" alone\"}");
  EXPECT_EQ(error(Post("/page", "a"), 405), "{\"error\":\"this path allows GET, HEAD\"}");
  error(Post("/echo", std::string(kBodyBytes + 1, 'a')), 413);
  error("POST /echo HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421);
  error(Head("/echo", "A: " + std::string(kHttpHeaderBytesMax, 'a') + "\r\n"), 431);
  error(Head("/echo", "Content-Length: 1\r\nContent-Length: 2\r\n"), 400);
  ASSERT_TRUE(visitors_.emplace_back(port_).Send(Post("/late", "0")));
  owed_.Next();
  EXPECT_EQ(visitors_[0].Read().body, "{\"error\":\"the request was given up without an answer\"}");
}

TEST_F(HttpReplyTest, IsStillGivenWhenNobodyElseIsLetIn) {
  Begin();
  const std::vector<OwedReply> owed = LetAsk(3);
  Visitor& body = visitors_.emplace_back(port_);
  ASSERT_TRUE(body.Send(Head("/echo", "Content-Length: 2\r\n") + "a"));
  ASSERT_EQ(Ask(Post("/echo", "in between")).status, 200);  // The server has seen the one before.
  server_->StopListening();
  server_->StopListening();
  EXPECT_FALSE(Visitor(port_).connected());
  EXPECT_FALSE(server_->AwaitPosts(0));
  ASSERT_TRUE(body.Send("b"));
  for (size_t i = 0; i < owed.size(); ++i) owed[i].reply(TextAnswer("reply"));
  for (Visitor& visitor : visitors_) {
    const VisitorAnswer answer = visitor.Read();
    EXPECT_EQ(answer.status, 200);
    EXPECT_THAT(answer.headers, HasSubstr("Connection: close\r\n"));
    EXPECT_TRUE(visitor.IsClosed());
  }
  EXPECT_TRUE(server_->AwaitPosts(Visitor::kDeadlineSeconds * 1000));
  // The port is free, so the next program can have it before this one has ended.
  HttpOptions again = Options();
  again.listen = "127.0.0.1:" + std::to_string(port_);
  const std::unique_ptr<HttpServer> ends = std::move(server_);
  Begin(again);
  EXPECT_EQ(Ask(Post("/echo", "a")).body, "a");
}

TEST_F(HttpReplyTest, IsNeverMixedUpWhileServersEnd) {
  for (int turn = 0; turn < 30; ++turn) {
    Begin();
    visitors_.clear();
    std::vector<OwedReply> owed = LetAsk(8);
    std::thread replies([&owed] {
      for (const OwedReply& one : owed) one.reply(TextAnswer("reply " + one.post.body));
    });
    server_.reset();
    replies.join();
    for (size_t i = 0; i < visitors_.size(); ++i) {
      const VisitorAnswer answer = visitors_[i].Read();
      if (answer.status == 200) {
        EXPECT_EQ(answer.body, "reply " + std::to_string(i));
      }
    }
  }
}

}  // namespace
}  // namespace hdps
