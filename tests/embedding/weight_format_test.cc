// Tests weights in 16 bits against their definition, and their rows for every vector width, rule
// and path.
#include "embedding/memory/weight_format.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "embedding/memory/optimizer.h"
#include "embedding/memory/row_policy.h"
#include "embedding/table.h"
#include "tests/embedding/row_optimizers.h"

namespace hdps {
namespace {

constexpr WeightFormat kNarrow[] = {WeightFormat::kFp16, WeightFormat::kBf16};

float Decode(WeightFormat format, uint16_t half) {
  return format == WeightFormat::kFp16 ? FromFp16(half) : FromBf16(half);
}
uint16_t Encode(WeightFormat format, float value, uint32_t up) {
  return format == WeightFormat::kFp16 ? ToFp16(value, up) : ToBf16(value, up);
}
uint16_t LargestOf(WeightFormat format) {
  return static_cast<uint16_t>(format == WeightFormat::kFp16 ? kFp16Max : kBf16Max);
}
int CutBits(WeightFormat format) { return format == WeightFormat::kFp16 ? 13 : 16; }

// Returns the value of fp16 bits by the standard: sign, 5 bits of exponent, 10 of fraction.
double Fp16ByDefinition(uint16_t half) {
  const int exponent = half >> 10 & 31, fraction = half & 1023;
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

TEST(WeightFormat, EveryNumberComesBackHoweverItIsRounded) {
  for (const WeightFormat format : kNarrow) {
    for (uint32_t magnitude = 0; magnitude <= LargestOf(format); ++magnitude) {
      for (const uint32_t sign : {0u, 0x8000u}) {
        const auto half = static_cast<uint16_t>(magnitude | sign);
        const float value = Decode(format, half);
        if (format == WeightFormat::kFp16) {
          ASSERT_EQ(value, Fp16ByDefinition(half)) << half;
        }
        for (const uint32_t up : {kNearest, 0u, (1u << CutBits(format)) - 1}) {
          ASSERT_EQ(Encode(format, value, up), half) << "number " << half << ", bits " << up;
        }
      }
    }
  }
}

TEST(WeightFormat, RoundsToTheNearestAndToEven) {
  for (const WeightFormat format : kNarrow) {
    Random random(3);
    for (int i = 0; i < 200'000; ++i) {
      const auto half = static_cast<uint16_t>(random.Below(LargestOf(format)));
      const double lower = Decode(format, half);
      const double upper = Decode(format, static_cast<uint16_t>(half + 1));
      // fp32 has the midpoint of any two numbers of the format, except bf16's smallest.
      const auto middle = static_cast<float>((lower + upper) / 2);
      const auto even = static_cast<uint16_t>(half + (half & 1));
      if (middle == (lower + upper) / 2) {
        ASSERT_EQ(Encode(format, middle, kNearest), even);
      }
      const auto above = static_cast<float>(lower + (upper - lower) * 0.6);
      const auto below = static_cast<float>(lower + (upper - lower) * 0.4);
      if (half < 0x200) continue;
      ASSERT_EQ(Encode(format, above, kNearest), half + 1) << half;
      ASSERT_EQ(Encode(format, -below, kNearest), half | 0x8000) << half;
    }
  }
}

TEST(WeightFormat, WhatIsTooLargeBecomesTheLargest) {
  for (const WeightFormat format : kNarrow) {
    for (const uint32_t up : {kNearest, 0u, (1u << CutBits(format)) - 1}) {
      const float most = std::numeric_limits<float>::max();
      EXPECT_EQ(Encode(format, most, up), LargestOf(format));
      EXPECT_EQ(Encode(format, -most, up), LargestOf(format) | 0x8000);
    }
  }
}

// The mean over all bits that can be drawn is the value itself, for normal and subnormal numbers.
TEST(WeightFormat, TheMeanOverAllBitsIsTheValue) {
  for (const WeightFormat format : kNarrow) {
    const uint32_t draws = 1u << CutBits(format);
    for (const float value : {1.0009f, -0.3337f, 3e-5f, 1.7e-6f, 123.456f, -0.0101f}) {
      double sum = 0, lowest = 1e9, highest = -1e9;
      for (uint32_t up = 0; up < draws; ++up) {
        const double rounded = Decode(format, Encode(format, value, up));
        sum += rounded;
        lowest = std::min(lowest, rounded);
        highest = std::max(highest, rounded);
      }
      // For small numbers, bits of fp32 below the drawn ones are cut off.
      EXPECT_NEAR(sum / draws, value, (highest - lowest) / draws + 1e-18) << value;
      EXPECT_LT(lowest, value);
      EXPECT_GT(highest, value);
    }
  }
}

TableSpec SpecOf(WeightFormat format, OptimizerKind rule, uint32_t dim) {
  TableSpec spec;
  spec.name = "rows";
  spec.dim = dim;
  spec.optimizer.record = &RecordOf(rule);
  spec.weights = format;
  return spec;
}

// Many updates, each a small part of the distance between two numbers: rounding to nearest would
// lose all of them.
TEST(WeightFormat, SmallUpdatesAddUp) {
  constexpr uint32_t kDim = 64;
  constexpr int kSteps = 400;
  constexpr size_t kKeys = 40;
  for (const WeightFormat format : kNarrow) {
    TableSpec spec = SpecOf(format, OptimizerKind::kSgd, kDim);
    spec.init = {InitKind::kConstant, 1.0f};
    spec.optimizer.learning_rate = 1;
    TableSlice slice(spec, TableId{0}, 7);
    const double quantum = format == WeightFormat::kFp16 ? 0x1p-10 : 0x1p-7;
    const auto step_size = static_cast<float>(quantum / 20);
    std::vector<Key> keys(kKeys);
    for (size_t k = 0; k < kKeys; ++k) keys[k] = k;
    const std::vector<float> gradients(kKeys * kDim, -step_size);
    for (int step = 1; step <= kSteps; ++step) {
      const TableSlice::Gradients part{keys, gradients, 1};
      slice.Apply({&part, 1}, 1, step);
    }
    std::vector<float> rows(kKeys * kDim);
    slice.Read(keys, kDim, rows);
    double sum = 0;
    for (const float weight : rows) sum += weight;
    // The update of each of 2560 weights has a variance of at most quantum^2 p (1 - p), with p = 1
    // / 20; five deviations of the mean.
    const double deviation =
        quantum * std::sqrt(kSteps * 0.05 * 0.95 / static_cast<double>(rows.size()));
    EXPECT_NEAR(sum / static_cast<double>(rows.size()), 1 + kSteps * double{step_size},
                5 * deviation);
  }
}

// Returns the rows and state of a slice after some steps.
std::vector<float> Trained(const TableSpec& spec, VectorWidth width, uint64_t seed) {
  TableSlice slice(spec, TableId{2}, seed, width);
  Random random(5);
  std::vector<Key> keys;
  for (Key key = 0; key < 200; ++key) keys.push_back(MixBits(key));
  for (int step = 1; step <= 3; ++step) {
    std::vector<float> gradients(keys.size() * spec.dim);
    for (float& g : gradients) g = static_cast<float>(random.Normal()) * 0.1f;
    const TableSlice::Gradients part{keys, gradients, 0.5f};
    slice.Apply({&part, 1}, 1, step);
  }
  std::vector<float> rows(keys.size() * (spec.dim + slice.state_floats()));
  slice.Read(keys, spec.dim + slice.state_floats(), rows);
  return rows;
}

TEST(WeightFormat, EveryVectorWidthRoundsAlike) {
  for (const WeightFormat format : kNarrow) {
    for (const OptimizerKind rule : RowOptimizers()) {
      for (const uint32_t dim : {1u, 7u, 16u, 80u, 300u}) {
        const TableSpec spec = SpecOf(format, rule, dim);
        const std::vector<float> plain = Trained(spec, VectorWidth::kPlain, 1);
        EXPECT_NE(plain, Trained(spec, VectorWidth::kPlain, 2)) << "the seed counts";
        for (const VectorWidth width : {VectorWidth::kAvx2, VectorWidth::kAvx512}) {
          if (width > WidestVectors()) continue;
          EXPECT_EQ(Trained(spec, width, 1), plain) << dim;
        }
      }
    }
  }
}

// A 16-bit weight is the plain 32-bit update rounded up or down, and the state is that of the plain
// update.
TEST(WeightFormat, AnUpdateIsThePlainOneRounded) {
  constexpr size_t kKeys = 50;
  for (const WeightFormat format : kNarrow) {
    const auto rounded = [format](float value, uint32_t random) {
      return format == WeightFormat::kFp16 ? FromFp16(ToFp16(value, random >> 19))
                                           : FromBf16(ToBf16(value, random >> 16));
    };
    for (const OptimizerKind rule : RowOptimizers()) {
      for (const uint32_t dim : {3u, 16u}) {
        const TableSpec spec = SpecOf(format, rule, dim);
        TableSlice slice(spec, TableId{1}, 3);
        const uint32_t floats = dim + slice.state_floats();
        Random random(dim);
        std::vector<Key> keys(kKeys);
        for (size_t k = 0; k < kKeys; ++k) keys[k] = k;
        std::vector<float> gradients(kKeys * dim), before(kKeys * floats), after(kKeys * floats);
        for (int64_t step = 1; step <= 4; ++step) {
          for (float& g : gradients) g = static_cast<float>(random.Normal());
          slice.Read(keys, floats, before);
          const TableSlice::Gradients part{keys, gradients, 1};
          slice.Apply({&part, 1}, 1, step);
          slice.Read(keys, floats, after);
          for (size_t k = 0; k < kKeys; ++k) {
            const std::span<float> row = std::span(before).subspan(k * floats, floats);
            UpdateRow(spec.optimizer, step, std::span(gradients).subspan(k * dim, dim),
                      row.first(dim), row.subspan(dim));
            for (uint32_t d = 0; d < dim; ++d) {
              const float value = after[k * floats + d];
              EXPECT_TRUE(value == rounded(row[d], 0) || value == rounded(row[d], ~0u))
                  << OptimizerName(rule) << ": " << value << " from " << row[d];
            }
            EXPECT_TRUE(std::equal(row.begin() + dim, row.end(), &after[k * floats + dim]))
                << OptimizerName(rule);
          }
        }
      }
    }
  }
}

// Compares loops with a dim known at compile time with the general loop, which is used for rows
// with policy data behind the state.
TEST(WeightFormat, AKnownDimChangesNoBit) {
  for (const WeightFormat format : kNarrow) {
    for (const OptimizerKind rule : RowOptimizers()) {
      for (const uint32_t dim : {16u, 64u, 80u}) {
        const TableSpec spec = SpecOf(format, rule, dim);
        TableSpec longer = spec;
        longer.policy.evict_after_steps = 1000;
        ASSERT_GT(PolicyFloats(longer.policy), 0u);
        const std::vector<float> known = Trained(spec, WidestVectors(), 1);
        const std::vector<float> any = Trained(longer, WidestVectors(), 1);
        const size_t floats = dim + RowStateFloats(spec), any_floats = dim + RowStateFloats(longer);
        ASSERT_EQ(known.size() / floats, any.size() / any_floats);
        for (size_t k = 0; k < known.size() / floats; ++k) {
          ASSERT_TRUE(
              std::equal(&known[k * floats], &known[k * floats] + floats, &any[k * any_floats]))
              << "row " << k << ", dim " << dim;
        }
      }
    }
  }
}

TEST(WeightFormat, ARowReadsAsWhatItHolds) {
  for (const WeightFormat format : kNarrow) {
    const TableSpec spec = SpecOf(format, OptimizerKind::kRowwiseAdagrad, 5);
    TableSlice slice(spec, TableId{0}, 9), copy(spec, TableId{0}, 9);
    const std::vector<Key> keys = {3, 1, 2};
    std::vector<float> before(15), weights(15), rows(18);
    slice.Read(keys, 5, before);
    const std::vector<float> nothing(15, 0.0f), gradients(15, 0.3f);
    TableSlice::Gradients part{keys, nothing, 1};
    slice.Apply({&part, 1}, 1, 1);
    slice.Read(keys, 5, weights);
    EXPECT_EQ(weights, before) << "a missing row reads as what it begins as";
    part.values = gradients;
    slice.Apply({&part, 1}, 1, 2);
    slice.Read(keys, 6, rows);
    for (size_t k = 0; k < keys.size(); ++k) {
      for (size_t i = 0; i < 5; ++i) {
        const float weight = rows[k * 6 + i];
        EXPECT_EQ(Decode(format, Encode(format, weight, kNearest)), weight);
      }
    }
    std::vector<uint32_t> positions;
    slice.ReadChanged(keys, 1, &positions, &weights);
    EXPECT_EQ(positions, (std::vector<uint32_t>{0, 1, 2}));
    EXPECT_EQ(weights[15], rows[0]);
    copy.Store(keys, 6, rows, 0);
    const Result<RowsDigest> own = slice.Digest(), copied = copy.Digest();
    EXPECT_EQ(own->sum[0], copied->sum[0]);
    EXPECT_EQ(own->rows, copied->rows);
  }
}

TEST(WeightFormat, RowsTakeHalfTheMemory) {
  EXPECT_EQ(RowBytes(SpecOf(WeightFormat::kFp32, OptimizerKind::kSgd, 64)), 256u);
  for (const WeightFormat format : kNarrow) {
    EXPECT_EQ(RowBytes(SpecOf(format, OptimizerKind::kSgd, 64)), 128u);
    EXPECT_EQ(RowBytes(SpecOf(format, OptimizerKind::kRowwiseAdagrad, 5)), 16u);
    constexpr size_t kKeys = 60'000, kDim = 64;
    uint64_t bytes[2] = {};
    for (const bool narrow : {false, true}) {
      const TableSpec spec =
          SpecOf(narrow ? format : WeightFormat::kFp32, OptimizerKind::kSgd, kDim);
      TableSlice slice(spec, TableId{0}, 1);
      std::vector<Key> keys(kKeys);
      for (size_t k = 0; k < kKeys; ++k) keys[k] = k;
      slice.Store(keys, kDim, std::vector<float>(kKeys * kDim, 1.0f), 0);
      bytes[narrow ? 1 : 0] = slice.bytes() - RowIndex::PredictBytes(kKeys);
    }
    EXPECT_NEAR(static_cast<double>(bytes[1]) / static_cast<double>(bytes[0]), 0.5, 0.08);
  }
}

}  // namespace
}  // namespace hdps
