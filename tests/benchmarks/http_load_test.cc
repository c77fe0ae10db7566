// Tests the load of benchmarks/serving against a server that answers as each test says.
#include "benchmarks/serving/http_load.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "benchmarks/serving/http_message.h"
#include "benchmarks/serving/load_figures.h"
#include "common/platform/executor.h"

namespace hdps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

std::string Answer(const std::string& body, const std::string& status = "200 OK") {
  return "HTTP/1.1 " + status + "\r\ncontent-length: " + std::to_string(body.size()) + "\r\n\r\n" +
         body;
}

std::string Request(const std::string& body) {
  return "POST /a HTTP/1.1\r\nHost: here\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

// Answers one connection after the other by a function of the request's number and body; an empty
// answer closes the connection.
class ScriptedServer {
 public:
  using Script = std::function<std::string(int number, const std::string& body)>;

  explicit ScriptedServer(Script script) : script_(std::move(script)) {
    listening_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof(address);
    EXPECT_EQ(bind(listening_, reinterpret_cast<sockaddr*>(&address), bytes), 0);
    EXPECT_EQ(listen(listening_, 16), 0);
    EXPECT_EQ(getsockname(listening_, reinterpret_cast<sockaddr*>(&address), &bytes), 0);
    address_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    thread_ = StartThread("scripted", [this] { Run(); });
  }
  ~ScriptedServer() {
    shutdown(listening_, SHUT_RDWR);  // Ends accept().
    thread_->Join();
    close(listening_);
  }

  const std::string& address() const { return address_; }

 private:
  void Run() {
    for (int fd; (fd = accept(listening_, nullptr, nullptr)) >= 0; close(fd)) {
      std::string received;
      char buffer[4096];
      for (ssize_t got; (got = recv(fd, buffer, sizeof(buffer), 0)) > 0;) {
        received.append(buffer, static_cast<size_t>(got));
        const std::optional<MessageHead> head = ReadMessageHead(received);
        if (!head || received.size() < head->head_bytes + *head->body_bytes) continue;
        const std::string answer = script_(number_++, received.substr(head->head_bytes));
        received.clear();
        if (answer.empty()) break;
        EXPECT_EQ(send(fd, answer.data(), answer.size(), MSG_NOSIGNAL),
                  static_cast<ssize_t>(answer.size()));
      }
    }
  }

  const Script script_;
  int listening_ = -1, number_ = 0;
  std::string address_;
  std::unique_ptr<Thread> thread_;
};

LoadPlan PlanOf(const ScriptedServer& server, double seconds, double requests_a_second) {
  return {.server = server.address(),
          .requests = {Request("a"), Request("bb")},
          .requests_a_second = requests_a_second,
          .connections = 1,
          .seconds = seconds};
}

TEST(HttpMessage, IsSplitByItsLength) {
  EXPECT_THAT(*SplitMessages(Request("a\r\n\r\n") + Request("")),
              ElementsAre(Request("a\r\n\r\n"), Request("")));
  const std::string cut = Request("abc").substr(0, Request("abc").size() - 1);
  EXPECT_THAT(SplitMessages(Request("a") + cut).status().message(), HasSubstr("message 1"));
  EXPECT_FALSE(SplitMessages("GET / HTTP/1.1\r\n\r\n").ok());
}

TEST(HttpMessage, TellsStatusLengthAndEnd) {
  EXPECT_FALSE(ReadMessageHead("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n"));
  const auto head =
      ReadMessageHead("HTTP/1.1 503 No\r\nContent-Length:3\r\nconnection: Close\r\n\r\n");
  ASSERT_TRUE(head);
  EXPECT_EQ(head->status, 503);
  EXPECT_EQ(head->body_bytes, 3u);
  EXPECT_TRUE(head->last);
  EXPECT_EQ(ModelVersionOf(R"({"a":1, "model_version" : "12","b":""})"), "12");
  EXPECT_EQ(ModelVersionOf(R"({"a":1})"), "");
}

TEST(HttpLoad, CountsFromThePlannedTimeWhateverAnEarlierAnswerTakes) {
  ScriptedServer server([](int, const std::string& body) { return Answer(body); });
  const auto report = RunLoad(PlanOf(server, 0.05, 1000));
  ASSERT_TRUE(report.ok()) << report.status().message();
  ASSERT_EQ(report->samples.size(), 50u);
  for (size_t i = 0; i < report->samples.size(); ++i) {
    const LoadSample& sample = report->samples[i];
    EXPECT_EQ(sample.due_ns, static_cast<int64_t>(i) * 1'000'000);
    EXPECT_GE(sample.sent_ns, sample.due_ns);
    EXPECT_GE(sample.answered_ns, sample.sent_ns);
    const int64_t free_ns = i == 0 ? 0 : report->samples[i - 1].answered_ns;
    EXPECT_GE(sample.sent_ns, free_ns);  // There is one connection.
  }
  EXPECT_THAT(report->answers, ElementsAre(Answer("a"), Answer("bb")));
  EXPECT_THAT(report->failures, IsEmpty());
}

TEST(HttpLoad, RandomGapsKeepTheRate) {
  ScriptedServer server([](int, const std::string& body) { return Answer(body); });
  LoadPlan plan = PlanOf(server, 0.25, 4000);
  plan.random_gaps = true;
  const auto report = RunLoad(plan);
  ASSERT_TRUE(report.ok());
  // 1,000 of them are expected, with a standard deviation of 32; the seed is fixed.
  EXPECT_NEAR(static_cast<double>(report->samples.size()), 1000, 160);
  EXPECT_NE(report->samples[2].due_ns - report->samples[1].due_ns,
            report->samples[1].due_ns - report->samples[0].due_ns);
}

TEST(HttpLoad, FailuresAreCountedByReason) {
  ScriptedServer server([](int number, const std::string&) {
    return number % 3 == 0   ? Answer("{}")
           : number % 3 == 1 ? Answer("no place", "503 Service Unavailable")
                             : std::string();
  });
  const auto report = RunLoad(PlanOf(server, 0.03, 1000));
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->samples.size(), 30u);
  EXPECT_THAT(report->failures,
              ElementsAre(Pair("closed before its answer", 10), Pair("status 503", 10)));
  EXPECT_EQ(report->first_failure, "no place");
}

TEST(HttpLoad, AnswersOfOneVersionStayTheSame) {
  ScriptedServer server([](int number, const std::string& body) {
    const std::string version = number < 10 ? "1" : "2";
    // A new version may answer anew; one answer of it is another one than before.
    return Answer(R"({"model_version":")" + version + R"(","data":[)" +
                  (number == 19 ? "mixed" : body + version) + "]}");
  });
  const auto report = RunLoad(PlanOf(server, 0.02, 1000));
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->versions.at("1").answers, 10u);
  EXPECT_EQ(report->versions.at("2").answers, 10u);
  EXPECT_LE(report->versions.at("1").first_seen, report->versions.at("2").first_seen);
  EXPECT_EQ(report->changed_answers, 1u);
}

TEST(HttpLoad, AsksAgainAtOnceWithoutARate) {
  ScriptedServer server([](int, const std::string& body) { return Answer(body); });
  const auto report = RunLoad(PlanOf(server, 0.02, 0));
  ASSERT_TRUE(report.ok());
  ASSERT_FALSE(report->samples.empty());
  for (const LoadSample& sample : report->samples) EXPECT_EQ(sample.sent_ns, sample.due_ns);
}

TEST(HttpLoad, NamesAServerThatIsNotThere) {
  std::string address;
  {
    ScriptedServer server([](int, const std::string&) { return std::string(); });
    address = server.address();
  }
  const LoadPlan plan = {.server = address, .requests = {Request("")}};
  EXPECT_EQ(RunLoad(plan).status().code(), Code::kUnavailable);
  EXPECT_EQ(RunLoad({.server = "here", .requests = {Request("")}}).status().code(),
            Code::kInvalidArgument);
}

TEST(LoadFigures, QuantilesAreObservedLatenciesFromThePlannedTimes) {
  LoadPlan plan;
  plan.seconds = 2;
  LoadReport report;
  for (int i = 1; i <= 100; ++i) {  // i ms after its planned time; the last half is due later.
    const int64_t due = i <= 50 ? 0 : 1'000'000'000;
    report.samples.push_back({.due_ns = due,
                              .sent_ns = due + 500'000,
                              .answered_ns = due + i * 1'000'000,
                              .status = 200});
  }
  report.samples.push_back({.due_ns = 0, .answered_ns = 1, .status = 503});
  const auto figures = nlohmann::json::parse(LoadFigures(plan, report, 32));
  EXPECT_EQ(figures["answered"], 100);
  EXPECT_EQ(figures["requests"], 101);
  EXPECT_DOUBLE_EQ(figures["p50_ms"], 50);
  EXPECT_DOUBLE_EQ(figures["p99_ms"], 99);
  EXPECT_DOUBLE_EQ(figures["max_ms"], 100);
  EXPECT_DOUBLE_EQ(figures["sent_late_p99_ms"], 0.5);
  EXPECT_DOUBLE_EQ(figures["rows_a_second"], 1600);
  EXPECT_DOUBLE_EQ(figures["worst_second"]["rows"], 1600);
  EXPECT_DOUBLE_EQ(figures["worst_second"]["p99_ms"], 100);
}

}  // namespace
}  // namespace hdps
