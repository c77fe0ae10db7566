// Parses an image: the byte of its label, and its pixels.
#include <string>

#include "common/job/job_facts.h"
#include "worker/data/formats/label.h"
#include "worker/data/formats/parsers.h"

namespace hdps {
namespace {

class IdxParser : public RowParser {
 public:
  IdxParser(size_t pixels, uint32_t num_classes) : pixels_(pixels), label_({}, num_classes) {
    expected_pixels_ = "an image of " + std::to_string(pixels) + " pixels";
  }

  std::optional<RowError> Parse(std::string_view line, Row* row) override {
    if (line.size() != pixels_ + 1) return RowError{line, {}, expected_pixels_};
    row->Clear();
    if (label_.read()) {
      label_text_ = LabelOf(line);
      const std::optional<float> label = label_.Parse(label_text_);
      if (!label) return RowError{label_text_, "label", label_.expected()};
      row->label = *label;
    }
    row->numbers.resize(pixels_);
    for (size_t p = 0; p < pixels_; ++p) row->numbers[p] = static_cast<unsigned char>(line[p + 1]);
    return std::nullopt;
  }

  std::vector<NamedText> Values(std::string_view line) override {
    std::vector<NamedText> values;
    if (line.empty()) return values;
    values.push_back({"label", LabelOf(line)});
    for (size_t p = 1; p < line.size(); ++p) {
      values.push_back(
          {"pixel" + std::to_string(p - 1), std::to_string(static_cast<unsigned char>(line[p]))});
    }
    return values;
  }

 private:
  static std::string LabelOf(std::string_view line) {
    return std::to_string(static_cast<unsigned char>(line[0]));
  }

  const size_t pixels_;
  const LabelRule label_;
  std::string expected_pixels_;
  std::string label_text_;  // Of the current image.
};

}  // namespace

std::unique_ptr<RowParser> NewIdxParser(const DataSpec& data, uint32_t num_classes) {
  return std::make_unique<IdxParser>(ImagePixels(data), num_classes);
}

}  // namespace hdps
