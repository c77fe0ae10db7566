// Writes requests to etcd, and reads its answers as bytes from outside.
#include <charconv>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

#include "common/base/outside_text.h"
#include "common/election/etcd.h"

namespace hdps {
namespace {

using Json = nlohmann::json;
using Kind = EtcdRequest::Kind;

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr size_t kShownBytesMax = 200, kValueBytesMax = 4096, kTokenBytesMax = 4096;

std::string Base64(std::string_view bytes) {
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t j = i; j < i + 3; ++j) {
      group = group << 8 | (j < bytes.size() ? static_cast<uint8_t>(bytes[j]) : 0u);
    }
    for (size_t digit = 0; digit < 4; ++digit) {
      const bool is_padding = i + digit > bytes.size();
      text += is_padding ? '=' : kDigits[group >> (18 - 6 * digit) & 63];
    }
  }
  return text;
}

// Throws for a text that is not base64.
std::string BytesOf(std::string_view text) {
  if (text.size() % 4 != 0) throw std::invalid_argument("a value of no whole bytes");
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) throw std::invalid_argument("a value that is not base64");
    bits = bits << 6 | static_cast<uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 255);
  }
  return bytes;
}

// Numbers of 64 bits are texts; a number of 0 is left out. Throws for all else.
int64_t NumberIn(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end()) return 0;
  int64_t number = -1;
  if (found->is_string()) {
    const std::string& text = found->get_ref<const std::string&>();
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) number = -1;
  } else if (found->is_number_unsigned()) {
    const uint64_t value = found->get<uint64_t>();
    if (value <= INT64_MAX) number = static_cast<int64_t>(value);
  }
  if (number < 0) throw std::invalid_argument(std::string(name) + " is no number");
  return number;
}

// Returns the first of the keys that a range has.
std::optional<EtcdEntry> EntryIn(const Json& response) {
  const Json& range = response.at("response_range");
  const auto entries = range.find("kvs");
  if (entries == range.end() || entries->empty()) return std::nullopt;
  const Json& first = entries->at(0);
  EtcdEntry entry;
  const std::string coded = first.value("value", std::string());
  if (coded.size() > kValueBytesMax) throw std::invalid_argument("a value is too long");
  entry.text = BytesOf(coded);
  entry.create_revision = NumberIn(first, "create_revision");
  entry.mod_revision = NumberIn(first, "mod_revision");
  entry.lease = NumberIn(first, "lease");
  if (entry.create_revision == 0 || entry.mod_revision < entry.create_revision) {
    throw std::invalid_argument("a key without its revisions");
  }
  return entry;
}

Json Range(const std::string& key) { return {{"request_range", {{"key", Base64(key)}}}}; }
Json Delete(const std::string& key) { return {{"request_delete_range", {{"key", Base64(key)}}}}; }
Json Put(const std::string& key, const std::string& value, int64_t lease) {
  return {{"request_put",
           {{"key", Base64(key)}, {"value", Base64(value)}, {"lease", std::to_string(lease)}}}};
}
Json Created(const std::string& key, int64_t revision) {
  return {{"key", Base64(key)},
          {"target", "CREATE"},
          {"result", "EQUAL"},
          {"create_revision", std::to_string(revision)}};
}
Json Changed(const std::string& key, int64_t revision) {
  return {{"key", Base64(key)},
          {"target", "MOD"},
          {"result", "EQUAL"},
          {"mod_revision", std::to_string(revision)}};
}

// Returns what etcd says of a request that it has not done.
Status Refusal(int http_status, const std::string& body) {
  constexpr int kBadRequest = 400, kUnauthorized = 401, kForbidden = 403, kNotFound = 404;
  const Json json = Json::parse(body, nullptr, /*allow_exceptions=*/false);
  const bool told = json.is_object() && json.contains("error") && json["error"].is_string();
  const std::string said =
      EscapeUntrusted(told ? json["error"].get<std::string>() : body, kShownBytesMax);
  const std::string what = "HTTP status " + std::to_string(http_status) + ", \"" + said + "\"";
  if (http_status == kNotFound && !told) {
    return {Code::kInvalidArgument,
            what + ": this is no etcd of version 3.4 or later, which knows /v3/kv/txn"};
  }
  const bool refused =
      http_status == kBadRequest || http_status == kUnauthorized || http_status == kForbidden;
  return {refused ? Code::kInvalidArgument : Code::kUnavailable, what};
}

Status Damaged(const std::exception& error) {
  return {Code::kUnavailable,
          std::string("the answer is damaged: ") + EscapeUntrusted(error.what(), kShownBytesMax)};
}

}  // namespace

std::string PathOf(const EtcdRequest& request) {
  switch (request.kind) {
    case Kind::kGrant:
      return "/v3/lease/grant";
    case Kind::kKeepAlive:
      return "/v3/lease/keepalive";
    case Kind::kRevoke:
      return "/v3/lease/revoke";
    default:
      return "/v3/kv/txn";
  }
}

std::string BodyOf(const EtcdPlace& place, const EtcdRequest& request) {
  const std::string leader = place.LeaderKey(), end = place.EndKey();
  switch (request.kind) {
    case Kind::kLook:
      return Json{{"success", {Range(leader), Range(end)}}}.dump();
    case Kind::kGrant:
      return Json{{"TTL", std::to_string(request.ttl_s)}}.dump();
    case Kind::kKeepAlive:
    case Kind::kRevoke:
      return Json{{"ID", std::to_string(request.lease)}}.dump();
    case Kind::kCampaign:
      return Json{{"compare", {Created(leader, 0), Changed(end, request.end_revision)}},
                  {"success", {Put(leader, request.text, request.lease), Delete(end)}}}
          .dump();
    case Kind::kEnd:
      return Json{{"compare", Json::array({Created(leader, request.reign)})},
                  {"success", {Put(end, request.text, 0), Delete(leader)}}}
          .dump();
  }
  return {};
}

std::string LoginBody(const EtcdLogin& login) {
  return Json{{"name", login.user}, {"password", login.password}}.dump(
      -1, ' ', false, Json::error_handler_t::replace);
}

Result<EtcdAnswer> ReadEtcdAnswer(const EtcdRequest& request, int http_status,
                                  const std::string& body) {
  constexpr int kHttpOk = 200;
  if (http_status != kHttpOk) return Refusal(http_status, body);
  try {
    const Json json = Json::parse(body);
    EtcdAnswer answer;
    if (request.kind == Kind::kKeepAlive) {
      const Json& result = json.at("result");
      answer.lease = NumberIn(result, "ID");
      answer.ttl_s = NumberIn(result, "TTL");
      return answer;
    }
    answer.revision = NumberIn(json.at("header"), "revision");
    if (request.kind == Kind::kGrant) {
      answer.lease = NumberIn(json, "ID");
      answer.ttl_s = NumberIn(json, "TTL");
      if (answer.lease == 0 || answer.ttl_s == 0) throw std::invalid_argument("no lease");
      return answer;
    }
    answer.succeeded = json.value("succeeded", false);
    if (request.kind != Kind::kLook) return answer;
    const Json& responses = json.at("responses");
    answer.leader = EntryIn(responses.at(0));
    answer.end = EntryIn(responses.at(1));
    return answer;
  } catch (const std::exception& error) {
    return Damaged(error);
  }
}

Result<std::string> ReadEtcdToken(int http_status, const std::string& body) {
  constexpr int kHttpOk = 200;
  if (http_status != kHttpOk) return Refusal(http_status, body);
  try {
    std::string token = Json::parse(body).at("token").get<std::string>();
    for (const char c : token) {
      if (c <= ' ' || c > '~') throw std::invalid_argument("no token");
    }
    if (token.empty() || token.size() > kTokenBytesMax) throw std::invalid_argument("no token");
    return token;
  } catch (const std::exception& error) {
    return Damaged(error);
  }
}

}  // namespace hdps
