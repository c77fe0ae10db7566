// Reads where etcd is, and how a client shows who it is.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/base/outside_text.h"
#include "common/election/etcd.h"
#include "common/net/address.h"

namespace hdps {
namespace {

constexpr size_t kEndpointsMax = 16, kPrefixBytesMax = 512;
constexpr uint64_t kLoginBytesMax = 1 << 16;

bool IsPlain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-' || c == '/';
}

// Refuses a file that is no secret.
Status CheckSecret(FileSystem& files, const std::string& flag, const std::string& path) {
  const Result<FileAccess> access = files.AccessOf(path);
  if (!access.ok()) return Status(Code::kInvalidArgument, flag + ": " + access.status().message());
  if (!access->ours) {
    return Status(Code::kInvalidArgument,
                  flag + ": " + path + " belongs to another user; chown it to this one");
  }
  if (!access->others_read && !access->others_write) return {};
  return Status(Code::kInvalidArgument,
                flag + ": " + path +
                    " can be read or written by other users, so it is no secret: chmod 600 " +
                    path + ", and change what is in it if they may have read it");
}

}  // namespace

Result<EtcdPlace> ParseEtcdPlace(const std::string& flag, const std::string& text) {
  const auto wrong = [&](const std::string& what) {
    return Status(Code::kInvalidArgument, flag + "=" + EscapeUntrusted(text) + ": " + what +
                                              "; write etcd://HOST:PORT[,HOST:PORT...]/PREFIX");
  };
  if (!text.starts_with(kEtcdScheme)) return wrong("it does not begin with etcd://");
  const std::string rest = text.substr(kEtcdScheme.size());
  const size_t slash = rest.find('/');
  if (slash == std::string::npos || slash + 1 == rest.size()) {
    return wrong("the prefix of the job's keys is missing");
  }
  EtcdPlace place;
  place.prefix = rest.substr(slash + 1);
  if (place.prefix.size() > kPrefixBytesMax || !std::ranges::all_of(place.prefix, IsPlain) ||
      place.prefix.front() == '/' || place.prefix.back() == '/') {
    return wrong("a prefix has letters, digits, '.', '_', '-' and '/' between them, at most " +
                 std::to_string(kPrefixBytesMax));
  }
  for (size_t from = 0; from <= slash;) {
    const size_t comma = std::min(rest.find(',', from), slash);
    const std::string endpoint = rest.substr(from, comma - from);
    const Result<Address> address = ParseAddress("tcp://" + endpoint);
    if (!address.ok() || !address->CanBeDialed() || address->data_port != 0) {
      return wrong("'" + EscapeUntrusted(endpoint) + "' is no HOST:PORT of an etcd");
    }
    place.beyond_loopback |= !address->OnThisMachine();
    place.endpoints.push_back(endpoint);
    from = comma + 1;
  }
  if (place.endpoints.size() > kEndpointsMax) {
    return wrong(std::to_string(place.endpoints.size()) + " endpoints are too many, at most " +
                 std::to_string(kEndpointsMax));
  }
  return place;
}

Result<EtcdLogin> ReadEtcdLogin(FileSystem& files, const std::string& flag,
                                const std::string& path) {
  HDPS_RETURN_IF_ERROR(CheckSecret(files, flag, path));
  const auto wrong = [&](const std::string& what) {
    return Status(Code::kInvalidArgument,
                  flag + ": " + path + ": " + what +
                      R"(; expected an object such as {"user": "...", "password": "...", )"
                      R"("ca": "ca.pem", "cert": "client.pem", "key": "client.key"})");
  };
  const Result<std::string> text = ReadWholeFile(files, path, kLoginBytesMax);
  if (!text.ok()) return wrong(text.status().message());
  const auto json = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return wrong("it holds no JSON object");
  EtcdLogin login;
  const std::pair<std::string, std::string*> fields[] = {{"user", &login.user},
                                                         {"password", &login.password},
                                                         {"ca", &login.ca},
                                                         {"cert", &login.cert},
                                                         {"key", &login.key}};
  for (const auto& [name, value] : json.items()) {
    const auto* const field =
        std::ranges::find(fields, name, &std::pair<std::string, std::string*>::first);
    if (field == std::end(fields)) return wrong("it has no field '" + EscapeUntrusted(name) + "'");
    if (!value.is_string()) return wrong("'" + name + "' is no text");
    *field->second = value.get<std::string>();
  }
  if (login.user.empty() != login.password.empty()) return wrong("user and password go together");
  if (login.cert.empty() != login.key.empty()) return wrong("cert and key go together");
  if (login.ca.empty() && !login.cert.empty()) return wrong("cert and key need ca");
  for (const std::string& pem : {login.ca, login.cert, login.key}) {
    if (!pem.empty() && !files.Exists(pem)) return wrong("there is no file " + pem);
  }
  if (!login.key.empty()) HDPS_RETURN_IF_ERROR(CheckSecret(files, flag, login.key));
  return login;
}

}  // namespace hdps
