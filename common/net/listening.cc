// Checks paths and network interfaces before and after an address is bound.
#include "common/net/listening.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/net/port_holder.h"
#include "common/net/transport.h"

namespace hdps {
namespace {

Status CannotListen(const Address& address, const std::string& why) {
  return Status(Code::kInvalidArgument, "address " + address.ToString() + " " + why);
}

Status InUse(const Address& address) {
  if (address.scheme != Address::Scheme::kTcp) {
    return CannotListen(address, "is in use; choose another path");
  }
  const std::string holder = HolderOfPort(address.port);
  return CannotListen(address, "is in use" + (holder.empty() ? "" : " by " + holder) +
                                   "; choose another port or 0");
}

Result<Address> BetweenProcesses(const std::string& text, bool may_leave) {
  HDPS_RETURN_IF_ERROR(CheckAddress(text, may_leave));
  HDPS_ASSIGN_OR_RETURN(Address address, ParseAddress(text));
  if (address.scheme != Address::Scheme::kInproc) return address;
  return Status(Code::kInvalidArgument, "address " + text +
                                            " is within one process; between processes write "
                                            "tcp://HOST:PORT or ipc://PATH");
}

// Is an error if the path is in use: ZeroMQ removes whatever is there before it binds.
Status CheckPathIsFree(const Address& address) {
  struct stat found = {};
  if (lstat(address.path.c_str(), &found) != 0) return Status();
  if (!S_ISSOCK(found.st_mode)) {
    return CannotListen(address, "names something that is no socket; choose another path");
  }
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, address.path.data(), address.path.size());
  const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (probe < 0) return Status();
  const bool answered = connect(probe, reinterpret_cast<const sockaddr*>(&name), sizeof(name)) == 0;
  close(probe);
  return answered ? InUse(address) : Status();
}

// Calls visit(address, interface) for each IPv4 address of this machine.
template <typename Visit>
void ForEachIpv4(const Visit& visit) {
  ifaddrs* interfaces = nullptr;
  if (getifaddrs(&interfaces) != 0) return;
  for (const ifaddrs* i = interfaces; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr || i->ifa_addr->sa_family != AF_INET) continue;
    char text[INET_ADDRSTRLEN] = {};
    const auto* ipv4 = reinterpret_cast<const sockaddr_in*>(i->ifa_addr);
    if (inet_ntop(AF_INET, &ipv4->sin_addr, text, sizeof(text)) == nullptr) continue;
    visit(std::string(text), *i);
  }
  freeifaddrs(interfaces);
}

}  // namespace

std::string OwnHost() {
  std::string host;
  ForEachIpv4([&](const std::string& address, const ifaddrs& interface) {
    const bool reached =
        (interface.ifa_flags & IFF_UP) != 0 && (interface.ifa_flags & IFF_LOOPBACK) == 0;
    if (reached && host.empty()) host = address;
  });
  return host.empty() ? "127.0.0.1" : host;
}

Result<Address> AddressToListenOn(const std::string& text, bool may_leave) {
  HDPS_ASSIGN_OR_RETURN(Address address, BetweenProcesses(text, may_leave));
  if (address.scheme == Address::Scheme::kIpc) HDPS_RETURN_IF_ERROR(CheckPathIsFree(address));
  return address;
}

Result<Address> AddressToDial(const std::string& text, bool may_leave) {
  HDPS_ASSIGN_OR_RETURN(Address address, BetweenProcesses(text, may_leave));
  if (!address.CanBeDialed()) {
    return Status(Code::kInvalidArgument,
                  "address " + text + " cannot be dialed; write the host and port it listens on");
  }
  return address;
}

Result<std::string> AsOthersDial(Address address, const std::string& bound) {
  if (address.scheme != Address::Scheme::kTcp) return address.ToString();
  HDPS_ASSIGN_OR_RETURN(const Address real, ParseAddress(bound));
  address.port = real.port;
  if (address.host == "*" || address.host == "0.0.0.0") address.host = OwnHost();
  return address.ToString();
}

std::string InterfacesOf(const Address& address) {
  if (address.host == "*" || address.host == "0.0.0.0") return "every interface";
  std::string found = "the interface of " + address.host;
  ForEachIpv4([&](const std::string& host, const ifaddrs& interface) {
    if (host == address.host) found = std::string("interface ") + interface.ifa_name;
  });
  return found;
}

Status BindFailure(const Address& address, int error, const std::string& text) {
  switch (error) {
    case EADDRINUSE:
      return InUse(address);
    case ENODEV:
    case EADDRNOTAVAIL:
      return CannotListen(address, "belongs to no network interface of this machine");
    default:
      return CannotListen(address, "cannot be listened on: " + text);
  }
}

}  // namespace hdps
