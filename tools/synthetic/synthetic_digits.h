// Small pictures of ten classes from a seed, as csv or IDX files: a stand-in for handwritten
// digits.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/platform/file_system.h"

namespace hdps {

inline constexpr uint32_t kDigitClasses = 10;
inline constexpr uint32_t kDigitSide = 28;
inline constexpr uint32_t kDigitPixels = kDigitSide * kDigitSide;

struct SyntheticDigitsSpec {
  uint64_t rows = 10000;
  uint64_t eval_rows = 2000;
  uint64_t seed = 1;
  // Standard deviation of a pixel, relative to the brightest pixel of a prototype.
  double noise = 0.25;
  bool idx = false;  // Writes IDX files like those of MNIST instead of csv.
};

struct DigitPicture {
  uint32_t label = 0;
  std::array<uint8_t, kDigitPixels> pixels = {};
};

// Pictures of ten classes. Each class has a prototype of a few soft strokes. A picture is its
// class's prototype, shifted by up to two pixels, brighter or darker, with noise.
class SyntheticDigits {
 public:
  explicit SyntheticDigits(const SyntheticDigitsSpec& spec);
  void PictureAt(uint64_t index, DigitPicture* picture) const;
  // Returns the class whose prototype is nearest, without shifts: the baseline for a model.
  uint32_t NearestPrototype(const DigitPicture& picture) const;

 private:
  using Prototype = std::array<double, kDigitPixels>;
  SyntheticDigitsSpec spec_;
  std::vector<Prototype> prototypes_;  // [kDigitClasses]
};

// Returns the file of the pictures to train or evaluate on: NAME.csv, or NAME-images-idx3-ubyte
// with its labels in NAME-labels-idx1-ubyte.
std::string DigitsFile(const SyntheticDigitsSpec& spec, const std::string& name);

// Writes both files into DIR. A line of a csv file has the label and then kDigitPixels numbers from
// 0 to 255. Returns the accuracy of NearestPrototype on the evaluation rows.
Result<double> WriteSyntheticDigits(FileSystem& files, const std::string& dir,
                                    const SyntheticDigitsSpec& spec);

}  // namespace hdps
