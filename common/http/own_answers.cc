// Writes reasons as text or JSON.
#include "common/http/own_answers.h"

#include <memory>
#include <nlohmann/json.hpp>

namespace hdps {

HttpAnswer OwnAnswers::Say(int status, const std::string& reason) const {
  HttpAnswer answer;
  answer.status = status;
  std::string body = reason + "\n";
  if (json_) {
    body = nlohmann::json{{"error", reason}}.dump(-1, ' ', false,
                                                  nlohmann::json::error_handler_t::replace);
  } else {
    answer.type = "text/plain; charset=utf-8";
  }
  answer.body = std::make_shared<const std::string>(std::move(body));
  return answer;
}

HttpAnswer OwnAnswers::SayLater(const std::string& reason) const {
  HttpAnswer answer = Say(503, reason);
  answer.headers.emplace_back("Retry-After", "1");
  return answer;
}

}  // namespace hdps
