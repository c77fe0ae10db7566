// Converts texts and numbers to class numbers.
#include "worker/data/formats/label.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/job/job_facts.h"
#include "worker/data/number.h"

namespace hdps {

LabelRule::LabelRule(std::vector<std::string> positive, uint32_t num_classes,
                     const std::vector<std::string>& classes)
    : positive_(std::move(positive)), num_classes_(num_classes) {
  for (uint32_t c = 0; c < classes.size(); ++c) classes_.emplace(classes[c], c);
  if (!positive_.empty() || !read()) {
    expected_ = "a label";
  } else if (!classes_.empty()) {
    expected_ = "a label: one of the " +
                std::to_string(std::min<size_t>(num_classes, classes.size())) +
                " texts of `classes`";
  } else if (num_classes == kLabelsAnyNumber) {
    expected_ = "a label: a number";
  } else if (num_classes == 2) {
    expected_ = "a label: 0, 1 or -1";
  } else {
    expected_ = "a label: a whole number from 0 to " + std::to_string(num_classes - 1);
  }
}

std::optional<float> LabelRule::Parse(std::string_view text) const {
  if (!read()) return 0.0f;
  const bool is_digit = text.size() == 1 && (text[0] == '0' || text[0] == '1');
  if (is_digit && positive_.empty() && classes_.empty() && num_classes_ >= 2)
    return text[0] == '1' ? 1.0f : 0.0f;
  text = TrimBlanks(text);
  if (text.empty()) return std::nullopt;
  if (!positive_.empty()) {
    return std::find(positive_.begin(), positive_.end(), text) == positive_.end() ? 0.0f : 1.0f;
  }
  if (!classes_.empty()) {
    const auto found = classes_.find(text);
    if (found == classes_.end() || found->second >= num_classes_) return std::nullopt;
    return static_cast<float>(found->second);
  }
  const std::optional<double> number = ParseNumber(text);
  if (!number) return std::nullopt;
  if (num_classes_ == kLabelsAnyNumber) {
    const auto label = static_cast<float>(*number);
    return std::isfinite(label) ? std::optional(label) : std::nullopt;
  }
  if (num_classes_ == 2 && *number == -1) return 0.0f;
  if (*number < 0 || *number >= num_classes_ || *number != std::floor(*number)) return std::nullopt;
  return static_cast<float>(*number);
}

uint64_t LabelRule::PositiveText(std::string_view text) const {
  constexpr size_t kTextsTold = 64;
  if (!read() || positive_.empty()) return 0;
  const auto found = std::find(positive_.begin(), positive_.end(), TrimBlanks(text));
  const auto place = static_cast<size_t>(found - positive_.begin());
  return found == positive_.end() || place >= kTextsTold ? 0 : uint64_t{1} << place;
}

}  // namespace hdps
