// Parses labels.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "worker/data/batch.h"

namespace hdps {

// Invariant: a parsed label is a whole number in [0, num_classes), or any finite number under
// kLabelsAnyNumber; 0 for every text if labels are not read.
class LabelRule {
 public:
  // With `positive` texts, a label is 1 if its trimmed text is one of them, and else 0; with
  // `classes`, it is the index of its text among them; otherwise it is a number. With two classes,
  // -1 means 0 in every format.
  LabelRule(std::vector<std::string> positive, uint32_t num_classes,
            const std::vector<std::string>& classes = {});
  std::optional<float> Parse(std::string_view text) const;
  // Returns bit t for `positive[t]`, as in Batch; 0 for a text that is not among the first 64.
  uint64_t PositiveText(std::string_view text) const;
  bool read() const { return num_classes_ != kLabelsNotRead; }
  std::string_view expected() const { return expected_; }  // "a label: 0, 1 or -1"

 private:
  std::vector<std::string> positive_;
  std::map<std::string, uint32_t, std::less<>> classes_;  // Class numbers by text.
  uint32_t num_classes_;
  std::string expected_;
};

}  // namespace hdps
