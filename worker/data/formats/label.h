// What counts as a label.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/job/job.h"
#include "worker/data/batch.h"

namespace hdps {

// Invariant: a label that Parse gives is a whole number in [0, num_classes), or any finite number
// under kLabelsAnyNumber; 0 for every text when labels are not read.
class LabelRule {
 public:
  // With `positive` texts a label is 1 when its trimmed text is one of them and 0 otherwise;
  // without it is a number. Of two classes -1 is another way to write 0, in every format.
  LabelRule(std::vector<std::string> positive, uint32_t num_classes);
  std::optional<float> Parse(std::string_view text) const;
  // Bit t for `positive[t]`, as Batch has it; 0 for a text that is none of the first 64 of them.
  uint64_t PositiveText(std::string_view text) const;
  bool read() const { return num_classes_ != kLabelsNotRead; }
  std::string_view expected() const { return expected_; }  // "a label: 0, 1 or -1"

 private:
  std::vector<std::string> positive_;
  uint32_t num_classes_;
  std::string expected_;
};

}  // namespace hdps
