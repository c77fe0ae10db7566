// One thread gives each request that is due to an idle connection, and polls those that are busy.
#include "benchmarks/serving/http_load.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <string_view>
#include <utility>

#include "benchmarks/serving/http_message.h"
#include "common/net/address.h"

namespace hdps {

namespace {

constexpr int64_t kSecondNs = 1'000'000'000;
// An answer that is not there so long after the end of the plan counts as none.
constexpr int64_t kPatienceNs = 10 * kSecondNs;
constexpr size_t kReadBytes = 256 << 10;

// Requires: the load has one begin, from which all times count.
int64_t NowNs(std::chrono::steady_clock::time_point begin) {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
}

double UnixTime() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Invariant: a connection is in idle_ or has a request under way; next_due_ns_ never goes back.
class Load {
 public:
  Load(const LoadPlan& plan, const sockaddr_in& server)
      : plan_(plan),
        server_(server),
        end_ns_(static_cast<int64_t>(plan.seconds * kSecondNs)),
        connections_(static_cast<size_t>(plan.connections)),
        polled_(connections_.size(), pollfd{.fd = -1, .events = POLLIN, .revents = 0}),
        buffer_(kReadBytes),
        hashes_(plan.requests.size()) {
    for (size_t i = connections_.size(); i > 0; --i) idle_.push_back(i - 1);
    report_.answers.resize(plan.requests.size());
  }
  ~Load() {
    for (const pollfd& polled : polled_) {
      if (polled.fd >= 0) close(polled.fd);
    }
  }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  LoadReport Run() {
    prctl(PR_SET_TIMERSLACK, 1000);  // Otherwise each wait ends up to 50 us late.
    for (;;) {
      const int64_t now = NowNs(begin_);
      while (!idle_.empty() && IsDue(now)) Send(now);
      const bool all_sent = closed_loop() ? now >= end_ns_ : next_due_ns_ >= end_ns_;
      if (all_sent && idle_.size() == connections_.size()) break;
      if (now > end_ns_ + kPatienceNs) {
        GiveUp();
        break;
      }
      const int64_t until =
          closed_loop() || all_sent || idle_.empty() ? now + kSecondNs / 10 : next_due_ns_;
      Poll(std::max<int64_t>(until - NowNs(begin_), 0));
    }
    return std::move(report_);
  }

 private:
  struct Connection {
    size_t request = 0;
    LoadSample sample;
    size_t sent = 0;  // Bytes of the request.
    bool busy = false;
    std::string received;
    std::optional<MessageHead> head;  // Of `received`, once it is whole.
  };

  bool closed_loop() const { return plan_.requests_a_second <= 0; }
  bool IsDue(int64_t now) const {
    return closed_loop() ? now < end_ns_ : next_due_ns_ <= now && next_due_ns_ < end_ns_;
  }

  // Returns when the request after one is due.
  int64_t GapNs() {
    const double mean = kSecondNs / plan_.requests_a_second;
    return static_cast<int64_t>(plan_.random_gaps ? -mean * std::log1p(-uniform_(random_)) : mean);
  }

  // Gives the next request to an idle connection. The one that was busy last is taken, because a
  // server closes those that are idle for long.
  void Send(int64_t now) {
    const size_t at = idle_.back();
    idle_.pop_back();
    Connection& connection = connections_[at];
    connection.request = next_request_++ % plan_.requests.size();
    connection.sample = {.due_ns = closed_loop() ? now : next_due_ns_, .sent_ns = now};
    connection.sent = 0;
    connection.busy = true;
    connection.received.clear();
    connection.head.reset();
    if (!closed_loop()) next_due_ns_ += GapNs();
    if (polled_[at].fd < 0) Open(at);
    Write(at);
  }

  void Open(size_t at) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const int yes = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    // The first write tells an error of this call.
    (void)connect(fd, reinterpret_cast<const sockaddr*>(&server_), sizeof(server_));
    polled_[at].fd = fd;
  }

  void Write(size_t at) {
    Connection& connection = connections_[at];
    const std::string& request = plan_.requests[connection.request];
    while (connection.sent < request.size()) {
      const ssize_t sent = send(polled_[at].fd, request.data() + connection.sent,
                                request.size() - connection.sent, MSG_NOSIGNAL);
      if (sent < 0 && errno != EAGAIN) return Fail(at, std::strerror(errno));
      if (sent < 0) break;
      connection.sent += static_cast<size_t>(sent);
    }
    polled_[at].events = connection.sent < request.size() ? POLLIN | POLLOUT : POLLIN;
  }

  void Read(size_t at) {
    Connection& connection = connections_[at];
    const ssize_t got = recv(polled_[at].fd, buffer_.data(), buffer_.size(), 0);
    if (got < 0 && errno == EAGAIN) return;
    if (!connection.busy) return Close(at);  // The server ends an idle connection.
    if (got < 0) return Fail(at, std::strerror(errno));
    if (got == 0) return Fail(at, "closed before its answer");
    connection.received.append(buffer_.data(), static_cast<size_t>(got));
    if (!connection.head) connection.head = ReadMessageHead(connection.received);
    if (!connection.head) return;
    if (!connection.head->body_bytes) return Fail(at, "an answer without Content-Length");
    if (connection.received.size() < connection.head->head_bytes + *connection.head->body_bytes)
      return;
    Answered(at);
  }

  void Answered(size_t at) {
    Connection& connection = connections_[at];
    connection.sample.answered_ns = NowNs(begin_);
    connection.sample.status = connection.head->status;
    report_.samples.push_back(connection.sample);
    const std::string_view body =
        std::string_view(connection.received).substr(connection.head->head_bytes);
    if (connection.head->status == 200) {
      Look(connection.request, body);
      if (report_.answers[connection.request].empty())
        report_.answers[connection.request] = connection.received;
    } else {
      ++report_.failures["status " + std::to_string(connection.head->status)];
      if (report_.first_failure.empty()) report_.first_failure = body;
    }
    if (connection.head->last) Close(at);
    Finish(at);
  }

  // Remembers the version and that an answer of it to this request is always the same.
  void Look(size_t request, std::string_view body) {
    const std::string version(ModelVersionOf(body));
    SeenVersion& seen = report_.versions[version];
    if (seen.answers++ == 0) seen.first_seen = UnixTime();
    const size_t hash = std::hash<std::string_view>()(body);
    const auto [first, is_first] = hashes_[request].try_emplace(version, hash);
    if (!is_first && first->second != hash) ++report_.changed_answers;
  }

  void Fail(size_t at, const std::string& reason) {
    Connection& connection = connections_[at];
    report_.samples.push_back(connection.sample);
    ++report_.failures[reason];
    Close(at);
    Finish(at);
  }

  void Finish(size_t at) {
    connections_[at].busy = false;
    polled_[at].events = POLLIN;
    idle_.push_back(at);
  }

  void Close(size_t at) {
    close(polled_[at].fd);
    polled_[at].fd = -1;
  }

  void GiveUp() {
    for (size_t at = 0; at < connections_.size(); ++at) {
      if (connections_[at].busy) Fail(at, "no answer within 10 s of the end");
    }
    for (; !closed_loop() && next_due_ns_ < end_ns_; next_due_ns_ += GapNs()) {
      report_.samples.push_back({.due_ns = next_due_ns_});
      ++report_.failures["never sent"];
    }
  }

  void Poll(int64_t wait_ns) {
    const timespec wait = {.tv_sec = wait_ns / kSecondNs, .tv_nsec = wait_ns % kSecondNs};
    if (ppoll(polled_.data(), polled_.size(), &wait, nullptr) <= 0) return;
    for (size_t at = 0; at < polled_.size(); ++at) {
      const short events = polled_[at].revents;
      if (polled_[at].fd < 0 || events == 0) continue;
      if (events & POLLOUT) Write(at);
      if (polled_[at].fd >= 0 && (events & ~POLLOUT)) Read(at);
    }
  }

  const LoadPlan& plan_;
  const sockaddr_in server_;
  const int64_t end_ns_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::vector<Connection> connections_;
  std::vector<pollfd> polled_;  // [connections]; -1 is not open.
  std::vector<size_t> idle_;    // The one that was busy last is the last.
  std::vector<char> buffer_;
  int64_t next_due_ns_ = 0;  // Of the open loop.
  size_t next_request_ = 0;
  std::mt19937_64 random_{1};
  std::uniform_real_distribution<double> uniform_{0, 1};
  std::vector<std::map<std::string, size_t>> hashes_;  // [requests], by version.
  LoadReport report_;
};

Result<sockaddr_in> SocketAddressOf(const std::string& server) {
  HDPS_ASSIGN_OR_RETURN(const Address address, ParseAddress(server));
  sockaddr_in found = {};
  found.sin_family = AF_INET;
  found.sin_port = htons(static_cast<uint16_t>(address.port));
  if (!address.CanBeDialed() || inet_pton(AF_INET, address.host.c_str(), &found.sin_addr) != 1) {
    return Status(Code::kInvalidArgument,
                  "--server=" + server + ": expected an IPv4 address and a port");
  }
  return found;
}

// Tells apart a server that is not there from one that fails under load.
Status CheckListens(const LoadPlan& plan, const sockaddr_in& server) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int failed = connect(fd, reinterpret_cast<const sockaddr*>(&server), sizeof(server));
  const int why = errno;
  close(fd);
  if (failed == 0) return Status();
  return {Code::kUnavailable, plan.server + ": " + std::strerror(why)};
}

}  // namespace

Result<LoadReport> RunLoad(const LoadPlan& plan) {
  if (plan.requests.empty()) return Status(Code::kInvalidArgument, "there are no requests to send");
  HDPS_ASSIGN_OR_RETURN(const sockaddr_in server, SocketAddressOf(plan.server));
  HDPS_RETURN_IF_ERROR(CheckListens(plan, server));
  return Load(plan, server).Run();
}

Result<std::vector<std::string>> SplitMessages(const std::string& text) {
  std::vector<std::string> messages;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::optional<MessageHead> head = ReadMessageHead(rest);
    if (!head || !head->body_bytes || rest.size() - head->head_bytes < *head->body_bytes) {
      return Status(Code::kInvalidArgument,
                    "message " + std::to_string(messages.size()) +
                        " is not a whole HTTP message with a Content-Length");
    }
    const size_t bytes = head->head_bytes + *head->body_bytes;
    messages.emplace_back(rest.substr(0, bytes));
    rest.remove_prefix(bytes);
  }
  return messages;
}

}  // namespace hdps
