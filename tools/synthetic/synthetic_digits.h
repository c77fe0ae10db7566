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
  double noise = 0.25;  // Deviation of a pixel, where the brightest of a prototype is 1.
  bool idx = false;     // Files as those of MNIST, instead of csv.
};

struct DigitPicture {
  uint32_t label = 0;
  std::array<uint8_t, kDigitPixels> pixels = {};
};

// Each class has a prototype of a few soft strokes. A picture is its class's prototype, moved by up
// to two pixels, brighter or darker, with noise.
class SyntheticDigits {
 public:
  explicit SyntheticDigits(const SyntheticDigitsSpec& spec);
  void PictureAt(uint64_t index, DigitPicture* picture) const;
  // The class whose prototype is nearest, unmoved: what a model has to beat.
  uint32_t NearestPrototype(const DigitPicture& picture) const;

 private:
  using Prototype = std::array<double, kDigitPixels>;
  SyntheticDigitsSpec spec_;
  std::vector<Prototype> prototypes_;  // [kDigitClasses]
};

// Names of the files with the pictures to train and to evaluate on: NAME.csv, or
// NAME-images-idx3-ubyte, whose labels are in NAME-labels-idx1-ubyte.
std::string DigitsFile(const SyntheticDigitsSpec& spec, const std::string& name);

// Writes both files into DIR. A line of a csv file is the label, then kDigitPixels numbers from 0
// to 255. Gives the accuracy of NearestPrototype on the evaluation rows.
Result<double> WriteSyntheticDigits(FileSystem& files, const std::string& dir,
                                    const SyntheticDigitsSpec& spec);

}  // namespace hdps
