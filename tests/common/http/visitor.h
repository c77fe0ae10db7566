// A visitor of an HTTP server in tests: sends bytes as they are, and reads answers.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>

namespace hdps {

struct VisitorAnswer {
  int status = 0;  // 0: the server closed the connection without an answer.
  std::string headers, body;
};

// One connection to a port of 127.0.0.1, from the address `from`. Reads end with an error after
// kDeadlineSeconds, which no right server needs.
class Visitor {
 public:
  static constexpr int kDeadlineSeconds = 60;

  explicit Visitor(int port, const std::string& from = "127.0.0.1")
      : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval deadline = {kDeadlineSeconds, 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof(deadline));
    // Without it, the second of two pieces waits for the acknowledgement of the first.
    const int on = 1;
    setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    // Without it, a port must be free of all connections that ended of late, to any server.
    setsockopt(socket_, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
    sockaddr_in name = {};
    name.sin_family = AF_INET;
    inet_pton(AF_INET, from.c_str(), &name.sin_addr);
    bind(socket_, reinterpret_cast<const sockaddr*>(&name), sizeof(name));
    inet_pton(AF_INET, "127.0.0.1", &name.sin_addr);
    name.sin_port = htons(static_cast<uint16_t>(port));
    connected_ = connect(socket_, reinterpret_cast<const sockaddr*>(&name), sizeof(name)) == 0;
  }
  ~Visitor() { close(socket_); }
  Visitor(const Visitor&) = delete;
  Visitor& operator=(const Visitor&) = delete;

  bool connected() const { return connected_; }
  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }
  void EndSending() { shutdown(socket_, SHUT_WR); }
  // Is true if the server has closed the connection; waits for it or for bytes.
  bool IsClosed() { return !Fill(); }

  VisitorAnswer Read(bool with_body = true) {
    VisitorAnswer answer;
    size_t end = std::string::npos;
    while ((end = received_.find("\r\n\r\n")) == std::string::npos) {
      if (!Fill()) return answer;
    }
    answer.headers = received_.substr(0, end + 2);
    received_.erase(0, end + 4);
    answer.status = std::atoi(answer.headers.substr(sizeof("HTTP/1.1")).c_str());
    const size_t length = answer.headers.find("Content-Length: ");
    const size_t bytes = length == std::string::npos || !with_body
                             ? 0
                             : std::strtoull(answer.headers.c_str() + length + 16, nullptr, 10);
    while (received_.size() < bytes && Fill()) {
    }
    answer.body = received_.substr(0, bytes);
    received_.erase(0, bytes);
    return answer;
  }

 private:
  bool Fill() {
    char buffer[1 << 14];
    const ssize_t got = recv(socket_, buffer, sizeof(buffer), 0);
    if (got <= 0) return false;
    received_.append(buffer, static_cast<size_t>(got));
    return true;
  }

  const int socket_;
  bool connected_ = false;
  std::string received_;
};

}  // namespace hdps
