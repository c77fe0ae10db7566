// Parses addresses and tells which of them other machines can reach.
#include "common/net/address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <utility>

#include "common/net/transport.h"

namespace hdps {
namespace {

constexpr size_t kSocketPathBytesMax = 107;  // sun_path of sockaddr_un, less its final zero.
constexpr size_t kHostBytesMax = 253;        // The longest name in DNS; see kAddressBytesMax.
constexpr const char* kRight = "tcp://HOST:PORT, HOST:PORT or ipc://PATH";

Status Malformed(const std::string& text, const std::string& what) {
  return Status(Code::kInvalidArgument, "address \"" + text + "\": " + what + "; write " + kRight);
}

bool IsHostCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' || c == '_';
}

bool IsLoopback(const std::string& host) {
  return host.starts_with("127.") && std::all_of(host.begin(), host.end(), [](char c) {
           return c == '.' || std::isdigit(static_cast<unsigned char>(c)) != 0;
         });
}

bool ParsePort(const std::string& text, int least, int* port) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *port);
  return !text.empty() && error == std::errc() && end == text.data() + text.size() &&
         *port >= least && *port <= kPortMax;
}

Result<Address> ParseTcp(const std::string& text, const std::string& rest) {
  const size_t colon = rest.rfind(':');
  if (colon == std::string::npos) return Malformed(text, "it has no port");
  Address address;
  address.host = rest.substr(0, colon);
  if (address.host == "localhost") address.host = "127.0.0.1";
  std::string port = rest.substr(colon + 1);
  if (address.host != "*" &&
      (address.host.empty() ||
       !std::all_of(address.host.begin(), address.host.end(), IsHostCharacter))) {
    return Malformed(text, "\"" + address.host + "\" is no host name or IPv4 address");
  }
  if (address.host.size() > kHostBytesMax) {
    return Malformed(
        text.substr(0, 64) + "...",
        "its host is longer than " + std::to_string(kHostBytesMax) + " bytes, as no host name is");
  }
  if (const size_t plus = port.find('+'); plus != std::string::npos) {
    const std::string data_port = port.substr(plus + 1);
    port.resize(plus);
    if (!ParsePort(data_port, 1, &address.data_port)) {
      return Malformed(text, "\"" + data_port + "\" is no port for data of 1..65535");
    }
  }
  if (port != "*" && !ParsePort(port, 0, &address.port)) {
    return Malformed(text, "\"" + port + "\" is no port of 0..65535");
  }
  if (address.data_port != 0 && address.data_port == address.port) {
    return Malformed(text, "both of its ports are " + port);
  }
  return address;
}

}  // namespace

std::string Address::ToString() const {
  switch (scheme) {
    case Scheme::kTcp:
      return Endpoint(port) + (data_port == 0 ? "" : "+" + std::to_string(data_port));
    case Scheme::kIpc:
      return "ipc://" + path;
    case Scheme::kInproc:
      return "inproc://" + path;
  }
  return "";
}

std::string Address::Endpoint(int of_port) const {
  return scheme == Scheme::kTcp ? "tcp://" + host + ":" + std::to_string(of_port) : ToString();
}

bool Address::CanBeDialed() const {
  if (scheme != Scheme::kTcp) return true;
  if (host == "*" || port == 0) return false;
  if (host.front() == '.' || host.find("..") != std::string::npos) return false;
  const bool numeric = std::ranges::all_of(
      host, [](char c) { return c == '.' || std::isdigit(static_cast<unsigned char>(c)) != 0; });
  if (!numeric) return true;
  in_addr number{};
  if (inet_pton(AF_INET, host.c_str(), &number) != 1) return false;
  const uint32_t first = ntohl(number.s_addr) >> 24;
  return first != 0 && first < 224;
}

bool Address::OnThisMachine() const { return scheme != Scheme::kTcp || IsLoopback(host); }

Result<Address> ParseAddress(const std::string& text) {
  if (text.size() > kAddressBytesMax) {
    return Malformed(text.substr(0, 64) + "...",
                     "it is longer than " + std::to_string(kAddressBytesMax) + " bytes");
  }
  const size_t colon = text.find("://");
  const std::string scheme = colon == std::string::npos ? "tcp" : text.substr(0, colon);
  std::string rest = colon == std::string::npos ? text : text.substr(colon + 3);
  if (scheme == "tcp") return ParseTcp(text, rest);
  Address address;
  if (scheme == "ipc") {
    address.scheme = Address::Scheme::kIpc;
  } else if (scheme == "inproc") {
    address.scheme = Address::Scheme::kInproc;
  } else {
    return Malformed(text, "\"" + scheme + "\" is not known");
  }
  address.path = std::move(rest);
  if (address.path.empty()) return Malformed(text, "nothing follows ://");
  if (address.path.find('\0') != std::string::npos) return Malformed(text, "it has a zero byte");
  if (address.scheme == Address::Scheme::kIpc && address.path.size() > kSocketPathBytesMax) {
    return Malformed(text, "its path is longer than " + std::to_string(kSocketPathBytesMax) +
                               " bytes, the system's limit");
  }
  return address;
}

Status CheckAddress(const std::string& address, bool may_leave) {
  HDPS_ASSIGN_OR_RETURN(const Address parsed, ParseAddress(address));
  if (parsed.OnThisMachine() || may_leave) return Status();
  return Status(Code::kInvalidArgument,
                "address \"" + address +
                    "\" reaches beyond this machine, where data would travel in clear and anyone "
                    "could send to it: make keys with hdps keygen --out=DIR and give --keys=DIR, "
                    "use 127.0.0.1, "
                    "or give --insecure if that is acceptable");
}

}  // namespace hdps
