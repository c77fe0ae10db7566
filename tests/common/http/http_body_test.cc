// Tests how an HTTP server reads bodies, and which it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <random>
#include <string>
#include <vector>

#include "tests/common/http/post_server.h"

namespace hdps {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class HttpBodyTest : public PostServerTest {
 protected:
  // Expects `request` to be answered with `body` when it comes in any two pieces, or by bytes.
  void ExpectInEveryCut(const std::string& request, const std::string& body) {
    Visitor visitor(port_);
    for (size_t cut = 0; cut <= request.size(); ++cut) {
      ASSERT_TRUE(visitor.Send(request.substr(0, cut)) && visitor.Send(request.substr(cut)));
      const VisitorAnswer answer = visitor.Read();
      ASSERT_EQ(answer.status, 200) << "cut at " << cut;
      ASSERT_EQ(answer.body, body) << "cut at " << cut;
    }
    for (const char byte : request) ASSERT_TRUE(visitor.Send(std::string(1, byte)));
    EXPECT_EQ(visitor.Read().body, body);
  }
};

TEST_F(HttpBodyTest, ComesInEveryCut) {
  Begin();
  const std::string body("a body\r\n\r\nwith \0 in it", 21);
  ExpectInEveryCut(Post("/echo", body), body);
  ExpectInEveryCut(Post("/echo", ""), "");
  ExpectInEveryCut(Head("/echo", ""), "");
  ExpectInEveryCut(Chunked("/echo", {"a", "b\r\nc", std::string(20, 'd')}),
                   "ab\r\nc" + std::string(20, 'd'));
  ExpectInEveryCut(Chunked("/echo", {}), "");
  ExpectInEveryCut(Head("/echo", "transfer-encoding: Chunked\r\n") +
                       "3;name=value\r\nabc\r\n002\r\nde\r\n0\r\nTrailer: x\r\n\r\n",
                   "abcde");
}

TEST_F(HttpBodyTest, IsLongerThanAConnectionHolds) {
  HttpOptions options = Options();
  options.limits.body_bytes = options.limits.bodies_bytes = 3 << 20;
  Begin(options);
  std::mt19937 random(1);
  std::string body(3 << 20, '\0');
  for (char& c : body) c = static_cast<char>(random());
  std::vector<std::string> chunks;
  for (size_t at = 0; at < body.size();) {
    chunks.push_back(body.substr(at, 1 + random() % 200000));
    at += chunks.back().size();
  }
  Visitor visitor(port_);
  for (const std::string& request : {Post("/echo", body), Chunked("/echo", chunks)}) {
    ASSERT_TRUE(visitor.Send(request));
    EXPECT_EQ(visitor.Read().body == body, true);
  }
}

TEST_F(HttpBodyTest, IsReadBehindTheOneBefore) {
  Begin();
  Visitor visitor(port_);
  std::string all;
  for (int i = 0; i < 50; ++i) {
    const std::string body(static_cast<size_t>(i * 19), 'a');
    all += i % 2 == 0 ? Post("/echo", body) : Chunked("/echo", {"b", body});
    all += "HEAD /page HTTP/1.1\r\nHost: localhost\r\n" + kBearer + "\r\n";
  }
  ASSERT_TRUE(visitor.Send(all));
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(visitor.Read().body, (i % 2 == 0 ? "" : "b") + std::string(i * 19, 'a'));
    EXPECT_THAT(visitor.Read(/*with_body=*/false).headers, HasSubstr("Content-Length: 10\r\n"));
  }
}

TEST_F(HttpBodyTest, ThatIsTooLongIsRefusedAndTheConnectionGoesOn) {
  Begin();
  Visitor visitor(port_);
  const std::string most(kBodyBytes, 'a'), more = most + "b", twice = most + most;
  for (const std::string& request : {Post("/echo", more), Post("/echo", twice),
                                     Chunked("/echo", {most, "b"}), Chunked("/echo", {twice})}) {
    ASSERT_TRUE(visitor.Send(request + Post("/echo", most)));
    const VisitorAnswer refused = visitor.Read();
    EXPECT_EQ(refused.status, 413);
    EXPECT_EQ(refused.body, "the body is longer than 1000 bytes\n");
    EXPECT_EQ(visitor.Read().body, most);
  }
}

TEST_F(HttpBodyTest, ThatIsMuchTooLongEndsTheConnection) {
  Begin();
  for (const std::string length :
       {"2001", "16777216", "9223372036854775808", "18446744073709551615"}) {
    Visitor visitor(port_);
    ASSERT_TRUE(visitor.Send(Head("/echo", "Content-Length: " + length + "\r\n")));
    EXPECT_EQ(visitor.Read().status, 413) << length;
    EXPECT_TRUE(visitor.IsClosed());
  }
  Visitor endless(port_);
  ASSERT_TRUE(endless.Send(Head("/echo", "Transfer-Encoding: chunked\r\n") +
                           Chunk(std::string(2 * kBodyBytes, 'a'))));
  endless.Send(Chunk("b") + "0\r\n\r\n");
  EXPECT_TRUE(endless.IsClosed());
  EXPECT_EQ(Ask(Post("/echo", "c")).body, "c");
}

TEST_F(HttpBodyTest, IsSentWhenTheServerGivesLeave) {
  Begin();
  Visitor visitor(port_);
  const std::string waits = "Expect: 100-continue\r\nContent-Length: ";
  ASSERT_TRUE(visitor.Send(Head("/echo", waits + "5\r\n")));
  EXPECT_EQ(visitor.Read().status, 100);
  ASSERT_TRUE(visitor.Send("hello"));
  EXPECT_EQ(visitor.Read().body, "hello");
  ASSERT_TRUE(visitor.Send(Head("/echo", waits + "1001\r\n")));
  EXPECT_EQ(visitor.Read().status, 413);
  EXPECT_TRUE(visitor.IsClosed());
}

TEST_F(HttpBodyTest, HasOneLength) {
  Begin();
  const std::string five = "Content-Length: 5\r\n", chunked = "Transfer-Encoding: chunked\r\n";
  for (const std::string& headers :
       {five + five, five + "Content-Length: 0\r\n", "Content-Length: 0\r\n" + five, five + chunked,
        chunked + chunked, std::string("Transfer-Encoding: gzip, chunked\r\n"),
        std::string("Transfer-Encoding: identity\r\n"), std::string("Transfer-Encoding:\r\n"),
        std::string("Content-Length: 5, 5\r\n"), std::string("Content-Length: -5\r\n"),
        std::string("Content-Length: +5\r\n"), std::string("Content-Length: 0x5\r\n"),
        std::string("Content-Length:\r\n")}) {
    Visitor visitor(port_);
    ASSERT_TRUE(visitor.Send(Head("/echo", headers) + "0\r\n\r\n"));
    EXPECT_EQ(visitor.Read().status, 400) << headers;
    EXPECT_TRUE(visitor.IsClosed());
  }
}

TEST_F(HttpBodyTest, WhoseLengthLiesIsNeverTaken) {
  Begin();
  Visitor less(port_), cut_chunk(port_), more(port_);
  ASSERT_TRUE(less.Send(Head("/late", "Content-Length: 6\r\n") + "hello"));
  less.EndSending();
  EXPECT_TRUE(less.IsClosed());
  ASSERT_TRUE(cut_chunk.Send(Head("/late", "Transfer-Encoding: chunked\r\n") + "5\r\nhel"));
  cut_chunk.EndSending();
  EXPECT_TRUE(cut_chunk.IsClosed());
  ASSERT_TRUE(more.Send(Head("/echo", "Content-Length: 4\r\n") + "hello\r\n\r\n"));
  EXPECT_EQ(more.Read().body, "hell");
  const int status_of_rest = more.Read().status;
  EXPECT_TRUE(status_of_rest == 0 || status_of_rest == 400) << status_of_rest;
  for (const std::string broken : {"5\r\nhello!\r\n0\r\n\r\n", "x\r\n", "-1\r\n", "\r\n",
                                   "ffffffffffffffffff\r\n", "5 5\r\nhello\r\n"}) {
    const int status = Ask(Head("/late", "Transfer-Encoding: chunked\r\n") + broken).status;
    EXPECT_TRUE(status == 400 || status == 413) << broken;
  }
  EXPECT_TRUE(server_->AwaitPosts(Visitor::kDeadlineSeconds * 1000));
}

TEST_F(HttpBodyTest, ShareTheMemoryOfAll) {
  Begin();
  const std::string head = Head("/echo", "Content-Length: 1000\r\n");
  const std::string chunked = Head("/echo", "Transfer-Encoding: chunked\r\n");
  Visitor first(port_), second(port_), third(port_);
  ASSERT_TRUE(first.Send(head + "a"));
  ASSERT_TRUE(second.Send(chunked + Chunk(std::string(900, 'b')) + "64\r\n"));
  // A chunked body takes its room as it comes, so there is a moment when the third has room.
  VisitorAnswer refused;
  for (int turn = 0; turn < 10000 && refused.status != 503; ++turn) {
    ASSERT_TRUE(third.Send(Post("/echo", std::string(700, 'c'))));
    refused = third.Read();
  }
  EXPECT_EQ(refused.status, 503);
  EXPECT_THAT(refused.headers, HasSubstr("Retry-After: 1\r\n"));
  EXPECT_THAT(refused.body, HasSubstr("hold as much as they may together, 2500 bytes"));
  ASSERT_TRUE(third.Send(Chunked("/echo", {std::string(300, 'd'), std::string(400, 'd')})));
  EXPECT_EQ(third.Read().status, 503);
  ASSERT_TRUE(third.Send(Post("/echo", std::string(600, 'e'))));
  EXPECT_EQ(third.Read().status, 200);
  ASSERT_TRUE(first.Send(std::string(999, 'a')));
  EXPECT_EQ(first.Read().body, std::string(1000, 'a'));
  ASSERT_TRUE(third.Send(Post("/echo", std::string(1000, 'f'))));
  EXPECT_EQ(third.Read().status, 200);
  ASSERT_TRUE(second.Send(std::string(100, 'b') + "\r\n0\r\n\r\n"));
  EXPECT_EQ(second.Read().body, std::string(1000, 'b'));
}

TEST_F(HttpBodyTest, HasATimeThatGrowsWithItsBytes) {
  EXPECT_EQ(HttpBodyMsMax(0), 10'000);
  EXPECT_EQ(HttpBodyMsMax(1 << 20), 10'000 + 1000);
  EXPECT_EQ(HttpBodyMsMax(16 << 20), 10'000 + 16'008);
  EXPECT_GT(HttpBodyMsMax(UINT64_MAX), 10'000);
}

TEST_F(HttpBodyTest, ThatComesTooSlowlyLosesItsRoomAndTheConnection) {
  HttpOptions options = Options();
  options.clock = &clock_;
  Begin(options);
  Visitor announced(port_), chunked(port_), other(port_);
  ASSERT_TRUE(announced.Send(Head("/echo", "Content-Length: 1000\r\n") + "a"));
  ASSERT_TRUE(chunked.Send(Head("/echo", "Transfer-Encoding: chunked\r\n") +
                           Chunk(std::string(900, 'b')) + "64\r\nb"));
  const auto status_of_other = [&other] {
    EXPECT_TRUE(other.Send(Post("/echo", std::string(700, 'c'))));
    return other.Read().status;
  };
  // Once there is no room, both have begun.
  while (status_of_other() != 503) {
  }
  clock_.now_ms += HttpBodyMsMax(1000);
  // Both are still in time, so this body begins no earlier than the clock was set.
  EXPECT_EQ(status_of_other(), 503);
  clock_.now_ms += 1;
  for (Visitor* const slow : {&announced, &chunked}) {
    ASSERT_TRUE(slow->Send("b"));
    const VisitorAnswer late = slow->Read();
    EXPECT_EQ(late.status, 408);
    EXPECT_EQ(late.body, "the body has not come within 10 s, and the connection is closed\n");
    EXPECT_THAT(late.headers, HasSubstr("Connection: close\r\n"));
    EXPECT_TRUE(slow->IsClosed());
  }
  EXPECT_EQ(status_of_other(), 200);
}

TEST_F(HttpBodyTest, ThatIsInTimeIsTakenThoughItComesInPieces) {
  HttpOptions options = Options();
  options.clock = &clock_;
  Begin(options);
  Visitor visitor(port_);
  ASSERT_TRUE(visitor.Send(Head("/echo", "Content-Length: 4\r\nExpect: 100-continue\r\n")));
  ASSERT_EQ(visitor.Read().status, 100) << "the body has begun";
  clock_.now_ms += HttpBodyMsMax(4);
  ASSERT_TRUE(visitor.Send("good"));
  EXPECT_EQ(visitor.Read().body, "good");
  // The next one has a time of its own.
  ASSERT_TRUE(visitor.Send(Head("/echo", "Content-Length: 4\r\nExpect: 100-continue\r\n")));
  ASSERT_EQ(visitor.Read().status, 100);
  clock_.now_ms += HttpBodyMsMax(4);
  ASSERT_TRUE(visitor.Send("more"));
  EXPECT_EQ(visitor.Read().body, "more");
}

TEST_F(HttpBodyTest, ThatIsRefusedHasNoMoreTime) {
  HttpOptions options = Options();
  options.clock = &clock_;
  Begin(options);
  Visitor visitor(port_), other(port_);
  ASSERT_TRUE(visitor.Send(Head("/echo", "Content-Length: 1001\r\n") + "a"));
  // The library looks at all connections in turns. One of these answers comes in the turn after
  // that in which both connections are read for the first time, whatever their order.
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(other.Send(Post("/echo", "b")));
    ASSERT_EQ(other.Read().status, 200);
  }
  clock_.now_ms += HttpBodyMsMax(1001) + 1;
  ASSERT_TRUE(visitor.Send("a"));
  EXPECT_EQ(visitor.Read().status, 408);
  EXPECT_TRUE(visitor.IsClosed());
}

TEST_F(HttpBodyTest, OfAStrangerIsNotRead) {
  Begin();
  const auto head = [](const std::string& headers) {
    return "POST /echo HTTP/1.1\r\nContent-Length: 5\r\n" + headers + "\r\n";
  };
  const std::string cookie =
      "Cookie: hdps_" + std::to_string(port_) + "=" + std::string(kToken) + "\r\n";
  const std::string query = "POST /echo?token=" + std::string(kToken) +
                            " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n";
  for (const std::string& request :
       {head("Host: localhost\r\n"), head("Host: localhost\r\n" + cookie), query}) {
    Visitor visitor(port_);
    ASSERT_TRUE(visitor.Send(request));
    const VisitorAnswer refused = visitor.Read();
    EXPECT_EQ(refused.status, 401);
    EXPECT_THAT(refused.body, HasSubstr("a POST has it as \"Authorization: Bearer\" alone"));
    EXPECT_THAT(refused.body + refused.headers, Not(HasSubstr(kToken)));
    EXPECT_TRUE(visitor.IsClosed());
  }
  EXPECT_EQ(Ask(head("Host: evil.example\r\n" + kBearer)).status, 421);
  const std::string open = "POST /open HTTP/1.1\r\nContent-Length: 5\r\n";
  EXPECT_EQ(Ask(open + "Host: localhost\r\n\r\nhello").body, "hello");
  EXPECT_EQ(Ask(open + "Host: evil.example\r\n\r\nhello").status, 421);
}

TEST_F(HttpBodyTest, OutlivesMutatedRequests) {
  HttpOptions options = Options();
  options.limits.connections = options.limits.connections_of_one_address = 128;
  Begin(options);
  const std::vector<std::string> seeds = {
      Post("/echo", "hello"), Chunked("/echo", {"hello", "world"}),
      Head("/sub/a", "Expect: 100-continue\r\nContent-Length: 3\r\n") + "abc",
      Post("/echo", std::string(1500, 'a')) + Post("/page", "b")};
  std::mt19937 random(7);
  const auto mutated = [&] {
    std::string bytes = seeds[random() % seeds.size()];
    for (uint32_t i = random() % 4; i < 4; ++i) {
      const size_t at = random() % bytes.size();
      if (random() % 3 == 0) bytes.erase(at, 1 + random() % 20);
      if (random() % 3 == 0) bytes.insert(at, seeds[random() % seeds.size()].substr(0, 60));
      bytes += ' ';
      bytes[at % bytes.size()] = static_cast<char>(random());
    }
    return bytes;
  };
  for (int turn = 0; turn < 100; ++turn) {
    std::deque<Visitor> visitors;
    for (int i = 0; i < 64; ++i) {
      Visitor& visitor = visitors.emplace_back(port_);
      visitor.Send(mutated());
      visitor.EndSending();
    }
    for (Visitor& visitor : visitors) {
      while (visitor.Read().status != 0) {
      }
    }
  }
  EXPECT_TRUE(server_->AwaitPosts(Visitor::kDeadlineSeconds * 1000));
  EXPECT_EQ(Ask(Post("/echo", std::string(kBodyBytes, 'a'))).status, 200);
}

}  // namespace
}  // namespace hdps
