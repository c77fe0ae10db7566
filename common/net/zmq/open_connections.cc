// Asks the kernel about sockets that libzmq owns.
#include "common/net/zmq/open_connections.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

namespace hdps {
namespace {

std::optional<uint64_t> CookieOf(int fd) {
  uint64_t cookie = 0;
  socklen_t size = sizeof(cookie);
  if (getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size) != 0) return std::nullopt;
  return cookie;
}

union SocketName {
  sockaddr any;
  sockaddr_in ipv4;
  sockaddr_un path;
};

}  // namespace

std::optional<OpenConnections::Identity> SystemConnections::Identify(int fd,
                                                                     const std::string& endpoint) {
  const std::optional<uint64_t> cookie = CookieOf(fd);
  SocketName own = {}, peer = {};
  socklen_t own_size = sizeof(own), peer_size = sizeof(peer);
  if (!cookie || getsockname(fd, &own.any, &own_size) != 0 ||
      getpeername(fd, &peer.any, &peer_size) != 0) {
    return std::nullopt;
  }
  std::string address = kOverIpc;
  if (own.any.sa_family == AF_UNIX) {
    if (!endpoint.ends_with(std::string("//") + own.path.sun_path)) return std::nullopt;
  } else {
    char host[INET_ADDRSTRLEN] = {};
    const std::string port = ":" + std::to_string(ntohs(own.ipv4.sin_port));
    if (own.any.sa_family != AF_INET || !endpoint.ends_with(port) ||
        inet_ntop(AF_INET, &peer.ipv4.sin_addr, host, sizeof(host)) == nullptr) {
      return std::nullopt;
    }
    address = host;
  }
  if (CookieOf(fd) != cookie) return std::nullopt;  // Names of two connections.
  return Identity{*cookie, address};
}

std::optional<OpenConnections::Bytes> SystemConnections::BytesOf(int fd, uint64_t cookie) {
  tcp_info info = {};
  socklen_t size = sizeof(info);
  const bool tcp = getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0;
  // Looked at behind the figures: they are of this connection if it is still there.
  if (CookieOf(fd) != cookie) return std::nullopt;
  if (!tcp) return Bytes{};
  return Bytes{info.tcpi_bytes_received, info.tcpi_bytes_acked};
}

void SystemConnections::End(int fd, uint64_t cookie) {
  // What the number means cannot change any more once we have a second one.
  const int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (own < 0) return;
  if (CookieOf(own) == cookie) shutdown(own, SHUT_RDWR);
  close(own);
}

}  // namespace hdps
