// What counts as a label.
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

// Invariant: a label that Parse gives is a whole number in [0, num_classes), or any finite number
// under kLabelsAnyNumber; 0 for every text when labels are not read.
class LabelRule {
 public:
  // With `positive` texts a label is 1 when its trimmed text is one of them and 0 otherwise; with
  // those of `classes` it is the place of its text among them; without it is a number. Of two
  // classes -1 is another way to write 0, in every format.
  LabelRule(std::vector<std::string> positive, uint32_t num_classes,
            const std::vector<std::string>& classes = {});
  std::optional<float> Parse(std::string_view text) const;
  // Bit t for `positive[t]`, as Batch has it; 0 for a text that is none of the first 64 of them.
  uint64_t PositiveText(std::string_view text) const;
  bool read() const { return num_classes_ != kLabelsNotRead; }
  std::string_view expected() const { return expected_; }  // "a label: 0, 1 or -1"

 private:
  std::vector<std::string> positive_;
  std::map<std::string, uint32_t, std::less<>> classes_;  // Their numbers.
  uint32_t num_classes_;
  std::string expected_;
};

}  // namespace hdps
