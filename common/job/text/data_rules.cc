// Checks the columns of images, and the settings of data that is followed.
#include <algorithm>

#include "common/job/job_facts.h"
#include "common/job/job_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/train_spec.h"
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

Status CheckFollow(const JobSource& source, const Job& job) {
  const DataSpec& data = job.data;
  HDPS_RETURN_IF_ERROR(CheckKafka(source, job));
  if (!data.follow) {
    if (data.follow_until.empty()) return {};
    return Refuse(source, "data.follow_until",
                  Quoted(data.follow_until) + " counts only where data.follow is true");
  }
  const auto refuse = [&](const char* place, const std::string& value, const std::string& mend) {
    return Refuse(source, place, value + " with data.follow: " + mend);
  };
  if (IsTablesJob(job)) {
    return refuse("data.follow", "true",
                  "the program that has the model reads the data, and cannot follow it; describe "
                  "the model in the job, or let the program read the log");
  }
  if (data.train.size() != 1) {
    return refuse("data.train", std::to_string(data.train.size()) + " entries",
                  "one is followed; name a folder or a pattern with all files");
  }
  if (data.follow_until.find('/') != std::string::npos) {
    return Refuse(source, "data.follow_until",
                  Quoted(data.follow_until) +
                      " is no name: it is a file in the followed folder, or beside the followed "
                      "file, such as _SUCCESS");
  }
  if (data.format == DataFormat::kIdx) {
    return refuse("data.format", "idx", "a file of images has its number of them in front");
  }
  if (job.train.epochs != 1) {
    return refuse("train.epochs", std::to_string(job.train.epochs),
                  "a log that grows is read once; set it to 1");
  }
  if (job.train.evals_per_epoch > 0) {
    return refuse("train.evals_per_epoch", std::to_string(job.train.evals_per_epoch),
                  "the rows of the epoch cannot be counted; use train.eval_every_steps");
  }
  if (data.validation_share > 0) {
    return refuse("data.validation_share", "a share",
                  "the rows held out would not be the same in any two evaluations; name files in "
                  "data.eval");
  }
  if (data.negatives.per_positive > 0) {
    return refuse("data.negatives.per_positive", std::to_string(data.negatives.per_positive),
                  "examples are made with items of all rows, which have not come yet; set it to "
                  "0, or use the loss sampled_softmax");
  }
  return {};
}

}  // namespace hdps
