// Puts places into words.
#include "tools/serve/requests/request_place.h"

#include "common/base/outside_text.h"

namespace hdps {

std::string Place::Text() const {
  std::string text(what);
  if (index != kNone) text += "[" + std::to_string(index) + "]";
  if (!name.empty()) text += " '" + EscapeUntrusted(name, 100) + "'";
  if (row != kNone) text += ", row " + std::to_string(row);
  if (!part.empty()) (text += ": ") += part;
  return text;
}

Status Wrong(const Place& place, const std::string& what) {
  return {Code::kInvalidArgument, place.Text() + what};
}

}  // namespace hdps
