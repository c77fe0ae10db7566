// Draws prototypes of soft strokes, and pictures from them.
#include "tools/synthetic/synthetic_digits.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>

#include "common/platform/random.h"
#include "tools/synthetic/fresh_file.h"

namespace hdps {
namespace {

constexpr uint64_t kPrototypeStream = 1, kPictureStream = 2;
constexpr uint64_t kFirstEvalRow = uint64_t{1} << 60;
constexpr size_t kWriteBytes = size_t{1} << 20;
constexpr int kSide = static_cast<int>(kDigitSide);
constexpr int kMoveMax = 2;

// Draws a soft line between two random points.
void AddStroke(Random& random, std::array<double, kDigitPixels>* image) {
  constexpr int kDots = 12;
  constexpr double kWidth = 1.5;
  const double x0 = 6 + 16 * random.Unit(), y0 = 5 + 18 * random.Unit();
  const double x1 = 6 + 16 * random.Unit(), y1 = 5 + 18 * random.Unit();
  for (int y = 0; y < kSide; ++y) {
    for (int x = 0; x < kSide; ++x) {
      double nearest = 1e9;
      for (int dot = 0; dot <= kDots; ++dot) {
        const double t = static_cast<double>(dot) / kDots;
        nearest = std::min(nearest, std::hypot(x - (x0 + t * (x1 - x0)), y - (y0 + t * (y1 - y0))));
      }
      double& pixel = (*image)[static_cast<size_t>(y * kSide + x)];
      pixel = std::max(pixel, std::exp(-nearest * nearest / (2 * kWidth * kWidth)));
    }
  }
}

// Writes pictures: rows of text, or two files of bytes.
class PictureFiles {
 public:
  static Result<PictureFiles> Create(FileSystem& files, const std::string& dir,
                                     const SyntheticDigitsSpec& spec, const std::string& name,
                                     uint64_t count) {
    PictureFiles out;
    const std::string path = dir + "/" + DigitsFile(spec, name);
    HDPS_ASSIGN_OR_RETURN(out.pictures_, CreateFresh(files, path));
    if (!spec.idx) return out;
    const auto number = static_cast<uint32_t>(count);
    HDPS_ASSIGN_OR_RETURN(out.labels_, CreateFresh(files, dir + "/" + name + "-labels-idx1-ubyte"));
    out.picture_text_ = IdxHead({number, kDigitSide, kDigitSide});
    out.label_text_ = IdxHead({number});
    return out;
  }

  Status Add(const DigitPicture& picture) {
    if (labels_ != nullptr) {
      label_text_ += static_cast<char>(picture.label);
      picture_text_.append(reinterpret_cast<const char*>(picture.pixels.data()), kDigitPixels);
    } else {
      picture_text_ += std::to_string(picture.label);
      for (const uint8_t pixel : picture.pixels) picture_text_ += ',' + std::to_string(pixel);
      picture_text_ += '\n';
    }
    return picture_text_.size() < kWriteBytes ? Status() : Flush();
  }
  Status Close() {
    HDPS_RETURN_IF_ERROR(Flush());
    if (labels_ != nullptr) HDPS_RETURN_IF_ERROR(labels_->Close());
    return pictures_->Close();
  }

 private:
  // Returns the head of an IDX file of bytes.
  static std::string IdxHead(const std::vector<uint32_t>& lengths) {
    std::string head = {0, 0, 8, static_cast<char>(lengths.size())};
    for (const uint32_t length : lengths) {
      for (const int shift : {24, 16, 8, 0}) head += static_cast<char>(length >> shift);
    }
    return head;
  }
  Status Flush() {
    HDPS_RETURN_IF_ERROR(pictures_->Append(std::as_bytes(std::span(picture_text_))));
    picture_text_.clear();
    if (labels_ == nullptr) return {};
    HDPS_RETURN_IF_ERROR(labels_->Append(std::as_bytes(std::span(label_text_))));
    label_text_.clear();
    return {};
  }

  std::unique_ptr<WritableFile> pictures_, labels_;  // The second only with IDX.
  std::string picture_text_, label_text_;            // Text that is not written yet.
};

Status WritePictures(FileSystem& files, const std::string& dir, const SyntheticDigits& digits,
                     const SyntheticDigitsSpec& spec, bool train, uint64_t* nearest_right) {
  const uint64_t count = train ? spec.rows : spec.eval_rows;
  HDPS_ASSIGN_OR_RETURN(PictureFiles out,
                        PictureFiles::Create(files, dir, spec, train ? "train" : "eval", count));
  DigitPicture picture;
  for (uint64_t i = 0; i < count; ++i) {
    digits.PictureAt((train ? 0 : kFirstEvalRow) + i, &picture);
    if (!train) *nearest_right += digits.NearestPrototype(picture) == picture.label ? 1 : 0;
    HDPS_RETURN_IF_ERROR(out.Add(picture));
  }
  return out.Close();
}

}  // namespace

SyntheticDigits::SyntheticDigits(const SyntheticDigitsSpec& spec) : spec_(spec) {
  constexpr int kStrokes = 4;
  for (uint64_t label = 0; label < kDigitClasses; ++label) {
    Random random(RandomAt(RandomAt(spec.seed, kPrototypeStream), label));
    Prototype prototype = {};
    for (int stroke = 0; stroke < kStrokes; ++stroke) AddStroke(random, &prototype);
    prototypes_.push_back(prototype);
  }
}

void SyntheticDigits::PictureAt(uint64_t index, DigitPicture* picture) const {
  Random random(RandomAt(RandomAt(spec_.seed, kPictureStream), index));
  picture->label = static_cast<uint32_t>(random.Below(kDigitClasses));
  const Prototype& prototype = prototypes_[picture->label];
  const int move_x = static_cast<int>(random.Below(2 * kMoveMax + 1)) - kMoveMax;
  const int move_y = static_cast<int>(random.Below(2 * kMoveMax + 1)) - kMoveMax;
  const double brightness = 0.6 + 0.4 * random.Unit();
  for (int y = 0; y < kSide; ++y) {
    for (int x = 0; x < kSide; ++x) {
      const int from_x = x - move_x, from_y = y - move_y;
      const bool inside = from_x >= 0 && from_x < kSide && from_y >= 0 && from_y < kSide;
      const double clean = inside ? prototype[static_cast<size_t>(from_y * kSide + from_x)] : 0;
      const double value = brightness * clean + spec_.noise * random.Normal();
      picture->pixels[static_cast<size_t>(y * kSide + x)] =
          static_cast<uint8_t>(std::lround(255 * std::clamp(value, 0.0, 1.0)));
    }
  }
}

uint32_t SyntheticDigits::NearestPrototype(const DigitPicture& picture) const {
  uint32_t nearest = 0;
  double nearest_distance = 1e300;
  for (uint32_t label = 0; label < kDigitClasses; ++label) {
    double distance = 0;
    for (size_t i = 0; i < kDigitPixels; ++i) {
      const double off = prototypes_[label][i] - picture.pixels[i] / 255.0;
      distance += off * off;
    }
    if (distance < nearest_distance) {
      nearest = label;
      nearest_distance = distance;
    }
  }
  return nearest;
}

std::string DigitsFile(const SyntheticDigitsSpec& spec, const std::string& name) {
  return name + (spec.idx ? "-images-idx3-ubyte" : ".csv");
}

Result<double> WriteSyntheticDigits(FileSystem& files, const std::string& dir,
                                    const SyntheticDigitsSpec& spec) {
  if (!(spec.noise >= 0 && spec.noise <= 10)) {
    return Status(Code::kInvalidArgument,
                  "--noise=" + std::to_string(spec.noise) + ": expected a deviation from 0 to 10");
  }
  HDPS_RETURN_IF_ERROR(files.MakeDirectories(dir));
  const SyntheticDigits digits(spec);
  uint64_t right = 0;
  for (const bool train : {true, false}) {
    HDPS_RETURN_IF_ERROR(WritePictures(files, dir, digits, spec, train, &right));
  }
  return static_cast<double>(right) / static_cast<double>(std::max<uint64_t>(1, spec.eval_rows));
}

}  // namespace hdps
