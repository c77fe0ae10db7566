// Makes the answers that a server gives by itself: why a request is refused.
#pragma once

#include <string>

#include "common/http/http_server.h"

namespace hdps {

// Writes each reason as a line of text, or as {"error": "..."} for `json`.
class OwnAnswers {
 public:
  explicit OwnAnswers(bool json) : json_(json) {}

  HttpAnswer Say(int status, const std::string& reason) const;
  // 503: the same request may be right in a second.
  HttpAnswer SayLater(const std::string& reason) const;

 private:
  const bool json_;
};

}  // namespace hdps
