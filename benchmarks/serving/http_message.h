// Finds where an HTTP message ends.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace hdps {

// The head of a message: its first line and headers.
struct MessageHead {
  size_t head_bytes = 0;  // With the empty line.
  // Value of Content-Length; none: the message does not tell its length.
  std::optional<size_t> body_bytes;
  int status = 0;     // Of an answer; 0 for a request.
  bool last = false;  // "Connection: close"
};

// Returns nothing while the head is not whole.
std::optional<MessageHead> ReadMessageHead(std::string_view bytes);

// Returns the value of the first "model_version" in a body, whatever the JSON's spaces; else empty.
std::string_view ModelVersionOf(std::string_view body);

}  // namespace hdps
