// Checks the columns of images.
#include <algorithm>

#include "common/job/spec/data_spec.h"
#include "common/job/text/job_sections.h"

namespace hdps {

Status CheckImages(const JobSource& source, const DataSpec& data) {
  constexpr uint64_t kPixelsMax = 1 << 20;
  uint64_t pixels = 1, numeric = 0;
  for (const uint32_t axis : data.image_shape) pixels = std::min(pixels * axis, kPixelsMax + 1);
  if (data.image_shape.empty()) {
    return Refuse(source, "data.image_shape",
                  "an image has an axis at least; give them as its file has them");
  }
  if (pixels > kPixelsMax) {
    return Refuse(
        source, "data.image_shape",
        "an image of so many pixels; at most " + std::to_string(kPixelsMax) + " are allowed");
  }
  for (const ColumnSpec& column : data.columns) {
    numeric += column.type == ColumnType::kNumeric ? 1 : 0;
    if (column.type == ColumnType::kNumeric) continue;
    if (column.type == ColumnType::kLabel && column.positive.empty()) continue;
    return Refuse(source, "data.columns",
                  Quoted(column.name) +
                      " is no column of an image: it has a label, a number, and numeric columns");
  }
  if (data.columns.empty() || numeric == pixels) return {};
  return Refuse(source, "data.columns",
                std::to_string(numeric) + " numeric columns for images of " +
                    std::to_string(pixels) +
                    " pixels (data.image_shape); give one a pixel, as with repeat");
}

}  // namespace hdps
