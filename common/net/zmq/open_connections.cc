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

#include "common/net/zmq/counted_reads.h"

namespace hdps {
namespace {

union SocketName {
  sockaddr any;
  sockaddr_in ipv4;
  sockaddr_un path;
};

}  // namespace

std::optional<uint64_t> CookieOf(int fd) {
  uint64_t cookie = 0;
  socklen_t size = sizeof(cookie);
  if (getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size) != 0) return std::nullopt;
  return cookie;
}

std::optional<ConnectionEnds> EndsOf(int fd) {
  const std::optional<uint64_t> cookie = CookieOf(fd);
  SocketName own = {}, peer = {};
  socklen_t own_size = sizeof(own), peer_size = sizeof(peer);
  if (!cookie || getsockname(fd, &own.any, &own_size) != 0 ||
      getpeername(fd, &peer.any, &peer_size) != 0) {
    return std::nullopt;
  }
  ConnectionEnds ends{{*cookie, kOverIpc}, ""};
  if (own.any.sa_family == AF_UNIX) {
    ends.accepted_at = std::string("//") + own.path.sun_path;
  } else {
    char host[INET_ADDRSTRLEN] = {};
    if (own.any.sa_family != AF_INET ||
        inet_ntop(AF_INET, &peer.ipv4.sin_addr, host, sizeof(host)) == nullptr) {
      return std::nullopt;
    }
    ends.accepted_at = ":" + std::to_string(ntohs(own.ipv4.sin_port));
    ends.identity.address = host;
  }
  if (CookieOf(fd) != cookie) return std::nullopt;  // The names are of two connections.
  return ends;
}

std::optional<OpenConnections::Identity> SystemConnections::Identify(int fd,
                                                                     const std::string& endpoint) {
  // If a connection with this descriptor was ended, it came before the current one.
  std::optional<ConnectionEnds> ends = FindEndedByParts(fd, endpoint);
  if (!ends) ends = EndsOf(fd);
  if (!ends || !endpoint.ends_with(ends->accepted_at)) return std::nullopt;
  return ends->identity;
}

std::optional<uint64_t> SystemConnections::ReceivedBy(int fd, uint64_t cookie) {
  tcp_info info = {};
  socklen_t size = sizeof(info);
  const bool tcp = getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0;
  // Checked after reading the figure: the figure belongs to this connection if it is still there.
  if (CookieOf(fd) != cookie) return std::nullopt;
  return tcp ? info.tcpi_bytes_received : 0;
}

bool SystemConnections::TakeEndedByParts(uint64_t cookie) { return hdps::TakeEndedByParts(cookie); }

void SystemConnections::End(int fd, uint64_t cookie) {
  // A second descriptor keeps the socket alive, so the number cannot change its meaning any more.
  const int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (own < 0) return;
  if (CookieOf(own) == cookie) shutdown(own, SHUT_RDWR);
  close(own);
}

}  // namespace hdps
