// Measures how many requests a second one thread answers over HTTP, over one connection and many:
// pages that it answers itself, and POSTs whose replies come from another thread.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "benchmarks/bench.h"
#include "benchmarks/yardsticks/row_yardsticks.h"
#include "common/base/bounded_queue.h"
#include "common/http/http_server.h"
#include "common/platform/executor.h"

namespace hdps {
namespace {

constexpr char kBench[] = "http";
constexpr char kToken[] = "0123456789abcdef0123456789abcdef";
constexpr size_t kBodyBytes = 1000, kConnectionsMax = 1024;

struct Case {
  const char* name;
  bool post;
  size_t busy;  // Connections that ask.
  size_t idle;
};
constexpr Case kCases[] = {
    {"get_1", false, 1, 0},   {"get_64", false, 64, 0},
    {"post_1", true, 1, 0},   {"post_1_of_1024", true, 1, kConnectionsMax - 1},
    {"post_64", true, 64, 0}, {"post_64_of_1024", true, 64, kConnectionsMax - 64}};

// A connection that is kept. All answers to its requests have the same length.
class Asker {
 public:
  explicit Asker(int port) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int on = 1;
    setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    sockaddr_in name = {};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    name.sin_port = htons(static_cast<uint16_t>(port));
    connected_ = connect(socket_, reinterpret_cast<const sockaddr*>(&name), sizeof(name)) == 0;
  }
  ~Asker() { close(socket_); }
  Asker(const Asker&) = delete;
  Asker& operator=(const Asker&) = delete;

  bool Send(const std::string& request) {
    return connected_ && send(socket_, request.data(), request.size(), MSG_NOSIGNAL) ==
                             static_cast<ssize_t>(request.size());
  }
  bool Read() {
    if (answer_bytes_ > 0) return Receive(answer_bytes_);
    size_t end = std::string::npos;
    while ((end = answer_.find("\r\n\r\n")) == std::string::npos) {
      if (!Receive(1)) return false;
    }
    if (!answer_.starts_with("HTTP/1.1 200")) return false;
    answer_bytes_ = end + 4 + kBodyBytes;
    return Receive(kBodyBytes);
  }

 private:
  bool Receive(size_t bytes) {
    if (bytes > 1) answer_.clear();
    const size_t before = answer_.size();
    answer_.resize(before + bytes);
    return recv(socket_, answer_.data() + before, bytes, MSG_WAITALL) ==
           static_cast<ssize_t>(bytes);
  }

  const int socket_;
  bool connected_ = false;
  std::string answer_;
  size_t answer_bytes_ = 0;
};

struct Owed {
  HttpPost post;
  HttpReply reply;
};

// A server, and a thread that replies to its POSTs with their bodies.
class Served {
 public:
  Status Start() {
    HttpOptions options;
    options.listen = "127.0.0.1:0";
    options.token = kToken;
    options.limits = {kConnectionsMax, kConnectionsMax, 128 << 10, kBodyBytes,
                      kConnectionsMax * kBodyBytes};
    const auto body = std::make_shared<const std::string>(kBodyBytes, 'a');
    const auto page = [body](const HttpRequest&) { return HttpAnswer{200, "text/plain", body}; };
    const auto take = [this](HttpPost post, HttpReply reply) {
      owed_.Push({std::move(post), std::move(reply)});
    };
    HDPS_ASSIGN_OR_RETURN(server_, HttpServer::Start(options, {{"/page", true, page},
                                                               {"/post", true, nullptr, take}}));
    replier_ = StartThread("replier", [this] {
      while (std::optional<Owed> owed = owed_.Pop()) {
        owed->reply(
            {200, "text/plain", std::make_shared<const std::string>(std::move(owed->post.body))});
      }
    });
    return {};
  }
  ~Served() {
    owed_.Close();
    if (replier_ != nullptr) replier_->Join();
  }
  int port() const {
    return std::stoi(server_->address().substr(server_->address().rfind(':') + 1));
  }

 private:
  BoundedQueue<Owed> owed_{kConnectionsMax};
  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<Thread> replier_;
};

Status RunCase(const BenchSetting& setting, const Case& c, BenchReport& report) {
  PrintProgress(kBench, c.name);
  Served served;
  HDPS_RETURN_IF_ERROR(served.Start());
  std::deque<Asker> askers;
  for (size_t i = 0; i < c.busy + c.idle; ++i) askers.emplace_back(served.port());
  const std::string request =
      c.post ? "POST /post HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
                   std::to_string(kBodyBytes) + "\r\n\r\n" + std::string(kBodyBytes, 'a')
             : "GET /page HTTP/1.1\r\nHost: localhost\r\n\r\n";
  bool failed = false;
  const auto ask_once = [&](size_t count) {
    for (size_t i = 0; i < count; ++i) failed = failed || !askers[i].Send(request);
    for (size_t i = 0; i < count; ++i) failed = failed || !askers[i].Read();
  };
  const size_t rounds = (c.idle > 0 ? 2000 : setting.quick ? 4000 : 20000) / c.busy;
  const auto requests_a_second = [&] {
    ask_once(askers.size());  // Warms up; and the server closes no connection for being idle.
    const double seconds = SecondsOf([&] {
      for (size_t round = 0; round < rounds; ++round) ask_once(c.busy);
    });
    return static_cast<double>(rounds * c.busy) / seconds;
  };
  const auto round_trips_a_second = [&] {
    const Result<double> seconds = SocketRoundTrip("tcp", rounds * c.busy);
    failed = failed || !seconds.ok();
    return failed ? 1 : 1 / *seconds;
  };
  const auto samples =
      InterleavedSamples(setting.repeats, {requests_a_second, round_trips_a_second});
  if (failed) return {Code::kUnavailable, std::string("http ") + c.name + ": no answer came"};
  report.AddBeside(kBench, c.name, "answered", "requests/s", samples[0],
                   "bare tcp socket, one after the other", samples[1]);
  return {};
}

}  // namespace

Status RunHttpBench(const BenchSetting& setting, FileSystem&, BenchReport& report) {
  for (const Case& c : kCases) {
    if (setting.Wants(c.name)) HDPS_RETURN_IF_ERROR(RunCase(setting, c, report));
  }
  return {};
}

}  // namespace hdps
