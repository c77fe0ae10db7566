// Resolves, binds and listens, over IPv4 as the rest of hdps.
#include "common/http/listening_socket.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/net/listening.h"

namespace hdps {
namespace {

Result<sockaddr_in> Resolved(const Address& address) {
  sockaddr_in name = {};
  name.sin_family = AF_INET;
  if (address.host != "*") {
    addrinfo wanted = {}, *found = nullptr;
    wanted.ai_family = AF_INET;
    wanted.ai_socktype = SOCK_STREAM;
    const int error = getaddrinfo(address.host.c_str(), nullptr, &wanted, &found);
    if (error != 0) {
      return Status(Code::kInvalidArgument, "host \"" + address.host +
                                                "\" is not known: " + gai_strerror(error) +
                                                "; give an IPv4 address of this machine");
    }
    std::memcpy(&name, found->ai_addr, sizeof(name));
    freeaddrinfo(found);
  }
  name.sin_port = htons(static_cast<uint16_t>(address.port));
  return name;
}

}  // namespace

Result<Address> HttpAddress(const std::string& listen) {
  const Result<Address> address = ParseAddress(listen);
  if (!address.ok() || listen.find("://") != std::string::npos || address->data_port != 0) {
    return Status(Code::kInvalidArgument, "\"" + listen +
                                              "\" is no address for HTTP; write HOST:PORT, as "
                                              "127.0.0.1:8080, where port 0 is any free one");
  }
  return address;
}

Result<ListeningSocket> ListenAt(const Address& address) {
  HDPS_ASSIGN_OR_RETURN(sockaddr_in name, Resolved(address));
  const auto failure = [&](int error) { return BindFailure(address, error, strerror(error)); };
  const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (descriptor < 0) return failure(errno);
  // Without it a port could not be listened at again for a minute after its last connection.
  const int on = 1;
  setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  socklen_t size = sizeof(name);
  auto* const bare = reinterpret_cast<sockaddr*>(&name);
  if (bind(descriptor, bare, size) != 0 || listen(descriptor, SOMAXCONN) != 0 ||
      getsockname(descriptor, bare, &size) != 0) {
    const int error = errno;
    close(descriptor);
    return failure(error);
  }
  return ListeningSocket{descriptor, ntohs(name.sin_port)};
}

std::string LocalHostOf(int connection) {
  sockaddr_in name = {};
  socklen_t size = sizeof(name);
  if (getsockname(connection, reinterpret_cast<sockaddr*>(&name), &size) != 0) return "";
  char text[INET_ADDRSTRLEN] = {};
  if (name.sin_family != AF_INET) return "";
  return inet_ntop(AF_INET, &name.sin_addr, text, sizeof(text)) == nullptr ? "" : text;
}

}  // namespace hdps
