// A server for tests that takes POSTs, and the replies that it owes.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/thread_annotations.h"
#include "common/http/http_server.h"
#include "tests/common/http/visitor.h"
#include "tests/common/platform/settable_clock.h"

namespace hdps {

inline HttpAnswer TextAnswer(const std::string& text) {
  return {200, "text/plain", std::make_shared<const std::string>(text)};
}

// A request that waits for its reply.
struct OwedReply {
  HttpPost post;
  HttpReply reply;
};

class OwedReplies {
 public:
  void Add(OwedReply owed) {
    const MutexLock lock(mutex_);
    owed_.push_back(std::move(owed));
    came_.notify_all();
  }
  // Returns the one that has waited longest; a reply of null after a deadline that no right server
  // needs.
  OwedReply Next() {
    const MutexLock lock(mutex_);
    const bool came = came_.wait_for(mutex_, std::chrono::seconds(Visitor::kDeadlineSeconds),
                                     [this]() HDPS_REQUIRES(mutex_) { return !owed_.empty(); });
    if (!came) return {};
    OwedReply owed = std::move(owed_.front());
    owed_.pop_front();
    return owed;
  }

 private:
  Mutex mutex_;
  ConditionVariable came_;
  std::deque<OwedReply> owed_ HDPS_GUARDED_BY(mutex_);
};

// /echo answers at once with the body, /late through owed_. /open is that of /echo without a token.
// /page is for GET alone, /sub/ and /sub/deep/ answer for all below them.
class PostServerTest : public ::testing::Test {
 protected:
  static constexpr char kToken[] = "0123456789abcdef0123456789abcdef";
  static inline const std::string kBearer = std::string("Authorization: Bearer ") + kToken + "\r\n";
  static constexpr size_t kBodyBytes = 1000, kBodiesBytes = 2500;

  static HttpOptions Options() {
    HttpOptions options;
    options.listen = "127.0.0.1:0";
    options.token = kToken;
    options.limits.body_bytes = kBodyBytes;
    options.limits.bodies_bytes = kBodiesBytes;
    return options;
  }
  void Begin(const HttpOptions& options = Options()) {
    const auto get = [](const HttpRequest& request) {
      return TextAnswer("page " + std::string(request.path));
    };
    const auto echo = [](const HttpPost& post, const HttpReply& reply) {
      reply(TextAnswer(post.body));
    };
    const auto late = [this](HttpPost post, HttpReply reply) {
      owed_.Add({std::move(post), std::move(reply)});
    };
    const auto deep = [](const HttpPost& post, const HttpReply& reply) {
      reply(TextAnswer("deep " + post.path));
    };
    Result<std::unique_ptr<HttpServer>> server =
        HttpServer::Start(options, {{"/echo", false, nullptr, echo},
                                    {"/late", false, nullptr, late},
                                    {"/open", true, nullptr, echo},
                                    {"/page", false, get},
                                    {"/sub/", false, get, echo},
                                    {"/sub/deep/", false, nullptr, deep}});
    ASSERT_TRUE(server.ok()) << server.status().message();
    server_ = *std::move(server);
    const std::string& address = server_->address();
    port_ = std::atoi(address.substr(address.rfind(':') + 1).c_str());
  }

  // Returns a POST with the token whose headers end with `headers`, each ended by \r\n.
  static std::string Head(const std::string& target, const std::string& headers) {
    return "POST " + target + " HTTP/1.1\r\nHost: localhost\r\n" + kBearer + headers + "\r\n";
  }
  static std::string Post(const std::string& target, const std::string& body) {
    return Head(target, "Content-Length: " + std::to_string(body.size()) + "\r\n") + body;
  }
  static std::string Chunked(const std::string& target, const std::vector<std::string>& chunks) {
    std::string all = Head(target, "Transfer-Encoding: chunked\r\n");
    for (const std::string& chunk : chunks) all += Chunk(chunk);
    return all + "0\r\n\r\n";
  }
  static std::string Chunk(const std::string& bytes) {
    char size[24];
    std::snprintf(size, sizeof(size), "%zX\r\n", bytes.size());
    return size + bytes + "\r\n";
  }
  VisitorAnswer Ask(const std::string& bytes) {
    Visitor visitor(port_);
    EXPECT_TRUE(visitor.Send(bytes));
    return visitor.Read();
  }

  OwedReplies owed_;
  SettableClock clock_;  // For HttpOptions::clock, which outlives the server.
  std::unique_ptr<HttpServer> server_;
  int port_ = 0;
};

}  // namespace hdps
