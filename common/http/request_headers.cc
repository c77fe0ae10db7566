// Asks the library for headers by name, whose case does not count.
#include "common/http/request_headers.h"

#include <microhttpd.h>
#include <strings.h>

#include <utility>

namespace hdps {

std::optional<std::string_view> HeaderOf(MHD_Connection* connection, std::string_view name) {
  const char* value = nullptr;
  size_t bytes = 0;
  if (MHD_lookup_connection_value_n(connection, MHD_HEADER_KIND, name.data(), name.size(), &value,
                                    &bytes) != MHD_YES) {
    return std::nullopt;
  }
  return value == nullptr ? std::string_view() : std::string_view(value, bytes);
}

int CountOf(MHD_Connection* connection, const std::string& name) {
  std::pair<const std::string&, int> count(name, 0);
  MHD_get_connection_values(
      connection, MHD_HEADER_KIND,
      [](void* to, MHD_ValueKind, const char* key, const char*) {
        auto* const counted = static_cast<decltype(count)*>(to);
        counted->second += strcasecmp(key, counted->first.c_str()) == 0;
        return MHD_YES;
      },
      &count);
  return count.second;
}

std::optional<BodyFrame> FrameOf(MHD_Connection* connection) {
  if (CountOf(connection, "Content-Length") > 1) return std::nullopt;
  if (CountOf(connection, "Transfer-Encoding") > 1) return std::nullopt;
  return BodyFrameOf(HeaderOf(connection, "Content-Length"),
                     HeaderOf(connection, "Transfer-Encoding"));
}

decltype(HttpPost::headers) HeadersOf(MHD_Connection* connection) {
  decltype(HttpPost::headers) headers;
  MHD_get_connection_values(
      connection, MHD_HEADER_KIND,
      [](void* to, MHD_ValueKind, const char* name, const char* value) {
        static_cast<decltype(headers)*>(to)->emplace(InLowerCase(name),
                                                     value == nullptr ? "" : value);
        return MHD_YES;
      },
      &headers);
  headers.erase("authorization");
  headers.erase("cookie");
  return headers;
}

}  // namespace hdps
