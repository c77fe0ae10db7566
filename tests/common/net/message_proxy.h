// Proxies unencrypted ZeroMQ connections: it sees all messages and may change them.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hdps {

// Splits the bytes of one side into greeting, READY and messages (rfc.zeromq.org/spec/23).
class ZmtpStream {
 public:
  using Message = std::vector<std::string>;

  // Calls pass(bytes) for bytes that are not a message, and on(message) for each message.
  template <typename Pass, typename On>
  void Feed(const std::string& bytes, const Pass& pass, const On& on) {
    rest_ += bytes;
    // The greeting is passed on in parts, because each side waits for the beginning of the other's.
    if (const size_t greeting = std::min(rest_.size(), greeting_left_); greeting > 0) {
      greeting_left_ -= greeting;
      pass(Take(greeting));
    }
    while (rest_.size() >= 2) {
      const auto flags = static_cast<uint8_t>(rest_[0]);
      const size_t head = (flags & kLong) != 0 ? 9 : 2;
      if (rest_.size() < head) return;
      uint64_t size = 0;
      for (size_t i = 1; i < head; ++i) size = size << 8 | static_cast<uint8_t>(rest_[i]);
      if (rest_.size() < head + size) return;
      const std::string frame = Take(head + size);
      if ((flags & kCommand) != 0) {
        pass(frame);
        continue;
      }
      message_.push_back(frame.substr(head));
      if ((flags & kMore) == 0) on(std::exchange(message_, {}));
    }
  }
  static std::string Wire(const Message& message) {
    std::string wire;
    for (size_t i = 0; i < message.size(); ++i) {
      wire += static_cast<char>(kLong | (i + 1 < message.size() ? kMore : 0));
      for (int shift = 56; shift >= 0; shift -= 8) {
        wire += static_cast<char>(message[i].size() >> shift);
      }
      wire += message[i];
    }
    return wire;
  }

 private:
  static constexpr uint8_t kMore = 1, kLong = 2, kCommand = 4;
  std::string Take(size_t size) {
    std::string taken = rest_.substr(0, size);
    rest_.erase(0, size);
    return taken;
  }
  size_t greeting_left_ = 64;
  std::string rest_;
  Message message_;
};

// Listens on loopback and forwards to another port of it.
class MessageProxy {
 public:
  using Message = ZmtpStream::Message;
  // Returns what to send in place of a message to or from the listener. Called on another thread,
  // one message at a time.
  using Change = std::function<std::vector<Message>(bool to_listener, Message message)>;

  MessageProxy(int to_port, Change change) : to_port_(to_port), change_(std::move(change)) {
    listener_fd_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in name = Loopback(0);
    socklen_t size = sizeof(name);
    EXPECT_EQ(bind(listener_fd_, reinterpret_cast<sockaddr*>(&name), size), 0);
    EXPECT_EQ(listen(listener_fd_, 8), 0);
    EXPECT_EQ(getsockname(listener_fd_, reinterpret_cast<sockaddr*>(&name), &size), 0);
    port_ = ntohs(name.sin_port);
    thread_ = std::thread([this] { Run(); });
  }
  ~MessageProxy() {
    stop_ = true;
    thread_.join();
    for (const Connection& connection : connections_) connection.Close();
    close(listener_fd_);
  }
  MessageProxy(const MessageProxy&) = delete;
  MessageProxy& operator=(const MessageProxy&) = delete;

  int port() const { return port_; }
  // Returns all bytes from the dialing side of the first connection.
  std::string recorded() const {
    const std::lock_guard lock(mutex_);
    return recorded_;
  }
  // Returns all bytes from either side.
  std::string overheard() const {
    const std::lock_guard lock(mutex_);
    return overheard_;
  }
  void CutAll() { cut_ = true; }

 private:
  struct Connection {
    std::array<int, 2> ends;  // The dialing end and the listening end.
    std::array<ZmtpStream, 2> streams;
    bool recorded = false;
    void Close() const {
      for (const int end : ends) close(end);
    }
  };
  static sockaddr_in Loopback(int port) {
    sockaddr_in name = {};
    name.sin_family = AF_INET;
    name.sin_port = htons(static_cast<uint16_t>(port));
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return name;
  }
  static void SendAll(int end, const std::string& bytes) {
    for (size_t sent = 0; sent < bytes.size();) {
      const ssize_t n = send(end, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) return;
      sent += static_cast<size_t>(n);
    }
  }

  void Run() {
    while (!stop_) {
      std::vector<pollfd> fds = {{listener_fd_, POLLIN, 0}};
      for (const Connection& connection : connections_) {
        for (const int end : connection.ends) fds.push_back({end, POLLIN, 0});
      }
      poll(fds.data(), fds.size(), 5);
      if (cut_.exchange(false)) {
        for (const Connection& connection : connections_) connection.Close();
        connections_.clear();
        continue;
      }
      size_t fd = 1;
      for (auto it = connections_.begin(); it != connections_.end();) {
        bool open = true;
        for (const size_t side : {0, 1}) {
          if (fds[fd++].revents != 0) open = open && Pump(*it, side);
        }
        if (!open) it->Close();
        it = open ? std::next(it) : connections_.erase(it);
      }
      if (fds[0].revents != 0) Accept();
    }
  }
  void Accept() {
    Connection connection;
    connection.ends[0] = accept(listener_fd_, nullptr, nullptr);
    connection.ends[1] = socket(AF_INET, SOCK_STREAM, 0);
    const sockaddr_in name = Loopback(to_port_);
    if (connect(connection.ends[1], reinterpret_cast<const sockaddr*>(&name), sizeof(name)) != 0) {
      connection.Close();
      return;
    }
    connection.recorded = !std::exchange(recording_, true);
    connections_.push_back(std::move(connection));
  }
  bool Pump(Connection& connection, size_t side) {
    std::string bytes(1 << 16, '\0');
    const ssize_t n = recv(connection.ends[side], bytes.data(), bytes.size(), 0);
    if (n <= 0) return false;
    bytes.resize(static_cast<size_t>(n));
    {
      const std::lock_guard lock(mutex_);
      overheard_ += bytes;
      if (side == 0 && connection.recorded) recorded_ += bytes;
    }
    const int out = connection.ends[1 - side];
    connection.streams[side].Feed(
        bytes, [&](const std::string& passed) { SendAll(out, passed); },
        [&](Message message) {
          for (const Message& changed : change_(side == 0, std::move(message))) {
            SendAll(out, ZmtpStream::Wire(changed));
          }
        });
    return true;
  }

  const int to_port_;
  const Change change_;
  int listener_fd_, port_ = 0;
  std::atomic<bool> stop_ = false, cut_ = false;
  std::list<Connection> connections_;
  bool recording_ = false;
  mutable std::mutex mutex_;
  std::string recorded_, overheard_;
  std::thread thread_;
};

}  // namespace hdps
