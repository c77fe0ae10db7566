// Reads the headers of a request from the HTTP library.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/http/http_server.h"
#include "common/http/request_rules.h"

struct MHD_Connection;

namespace hdps {

// Returns the first value of a header; nothing if it is not there.
std::optional<std::string_view> HeaderOf(MHD_Connection* connection, std::string_view name);
int CountOf(MHD_Connection* connection, const std::string& name);

// Returns all headers but those with the visitor's token. Of one that is there twice, the first
// counts.
decltype(HttpPost::headers) HeadersOf(MHD_Connection* connection);

// Returns nothing if the headers do not agree where the body ends.
std::optional<BodyFrame> FrameOf(MHD_Connection* connection);

}  // namespace hdps
