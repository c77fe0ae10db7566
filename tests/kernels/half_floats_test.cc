// Tests 16-bit numbers against their definition, at every boundary between two, for every vector
// width.
#include "kernels/host/half_floats.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "common/platform/random.h"
#include "gtest/gtest.h"

namespace hdps {
namespace {

constexpr DType kNarrow[] = {DType::kFp16, DType::kBf16};
constexpr float kInfinite = std::numeric_limits<float>::infinity();

uint16_t NarrowOne(DType format, float value) {
  return format == DType::kFp16 ? NarrowToFp16(value) : NarrowToBf16(value);
}
float WidenOne(DType format, uint16_t half) {
  return format == DType::kFp16 ? WidenFp16(half) : FromBf16(half);
}
uint16_t LargestOf(DType format) {
  return static_cast<uint16_t>(format == DType::kFp16 ? kFp16Max : kBf16Max);
}
// Returns the value of the bits of a finite number, by the standard.
double ByDefinition(DType format, uint16_t half) {
  const int fraction_bits = format == DType::kFp16 ? 10 : 7;
  const int bias = format == DType::kFp16 ? 15 : 127;
  const int exponent = (half & 0x7fff) >> fraction_bits;
  const int one = 1 << fraction_bits;
  const int fraction = half & (one - 1);
  const double magnitude = std::ldexp(exponent == 0 ? fraction : one + fraction,
                                      (exponent == 0 ? 1 : exponent) - bias - fraction_bits);
  return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

TEST(HalfFloats, EveryBoundaryBetweenTwoNumbersIsWhereItShouldBe) {
  for (const DType format : kNarrow) {
    for (uint16_t half = 0; half < LargestOf(format); ++half) {
      const auto next = static_cast<uint16_t>(half + 1);
      const double lower = ByDefinition(format, half), upper = ByDefinition(format, next);
      ASSERT_EQ(WidenOne(format, half), lower) << half;
      ASSERT_EQ(NarrowOne(format, static_cast<float>(lower)), half);
      // A float may lack the midpoint if bf16 numbers are as small as floats get.
      const auto middle = static_cast<float>((lower + upper) / 2);
      ASSERT_EQ(middle, (lower + upper) / 2) << half;
      const uint16_t even = (half & 1) == 0 ? half : next;
      ASSERT_EQ(NarrowOne(format, middle), even) << half;
      ASSERT_EQ(NarrowOne(format, -middle), even | 0x8000) << half;
      ASSERT_EQ(NarrowOne(format, std::nextafter(middle, 0.0f)), half);
      ASSERT_EQ(NarrowOne(format, std::nextafter(middle, kInfinite)), next);
    }
  }
}

TEST(HalfFloats, TooLargeBecomesTheLargestAndWhatIsNoNumberStaysSo) {
  for (const DType format : kNarrow) {
    const uint16_t largest = LargestOf(format);
    const auto value = static_cast<float>(ByDefinition(format, largest));
    for (const float large : {value, value * 1.0001f, std::numeric_limits<float>::max()}) {
      EXPECT_EQ(NarrowOne(format, large), largest);
      EXPECT_EQ(NarrowOne(format, -large), largest | 0x8000);
    }
    EXPECT_EQ(WidenOne(format, NarrowOne(format, kInfinite)), kInfinite);
    EXPECT_EQ(WidenOne(format, NarrowOne(format, -kInfinite)), -kInfinite);
    for (const uint32_t payload : {1u, 0x400000u, 0x7fffffu}) {
      const auto none = std::bit_cast<float>(0x7f800000u | payload);
      EXPECT_TRUE(std::isnan(WidenOne(format, NarrowOne(format, none)))) << payload;
    }
  }
}

// Returns floats of every exponent and sign, with NaN and infinities.
std::vector<float> AnyFloats(size_t count) {
  Random random(11);
  std::vector<float> values(count);
  for (float& value : values) {
    value = std::bit_cast<float>(static_cast<uint32_t>(random.Below(uint64_t{1} << 32)));
  }
  return values;
}

TEST(HalfFloats, ManyAtOnceAreTheSameBitsForEveryWidth) {
  std::vector<VectorWidth> widths = {VectorWidth::kPlain};
  if (WidestVectors() != VectorWidth::kPlain) widths.push_back(VectorWidth::kAvx2);
  if (WidestVectors() == VectorWidth::kAvx512) widths.push_back(VectorWidth::kAvx512);
  for (const size_t count : {size_t{0}, size_t{1}, size_t{17}, size_t{100'003}}) {
    const std::vector<float> values = AnyFloats(count);
    for (const DType format : kNarrow) {
      for (const VectorWidth width : widths) {
        std::vector<uint16_t> halves(count);
        NarrowFloats(width, format, values, reinterpret_cast<std::byte*>(halves.data()));
        for (size_t i = 0; i < count; ++i) {
          ASSERT_EQ(halves[i], NarrowOne(format, values[i])) << std::hexfloat << values[i];
        }
        // Every bit pattern, also those that rounding does not produce.
        for (size_t i = 0; i < count; ++i) halves[i] = static_cast<uint16_t>(i);
        std::vector<float> wide(count);
        WidenFloats(width, format, reinterpret_cast<const std::byte*>(halves.data()), wide);
        for (size_t i = 0; i < count; ++i) {
          const float expected = WidenOne(format, static_cast<uint16_t>(i));
          ASSERT_EQ(std::bit_cast<uint32_t>(wide[i]), std::bit_cast<uint32_t>(expected)) << i;
        }
      }
    }
  }
}

TEST(HalfFloats, ThirtyTwoBitsGoThroughAsTheyAre) {
  const std::vector<float> values = AnyFloats(1000);
  std::vector<float> copy(values.size()), back(values.size());
  NarrowFloats(WidestVectors(), DType::kFp32, values, reinterpret_cast<std::byte*>(copy.data()));
  WidenFloats(WidestVectors(), DType::kFp32, reinterpret_cast<const std::byte*>(copy.data()), back);
  EXPECT_EQ(std::memcmp(back.data(), values.data(), values.size() * sizeof(float)), 0);
}

TEST(HalfFloats, TheFirstThatIsNoNumberIsFound) {
  for (const DType format : kNarrow) {
    std::vector<uint16_t> halves(20'000, LargestOf(format));
    const auto first_bad = [&] {
      return FirstNotFinite(format, reinterpret_cast<const std::byte*>(halves.data()),
                            halves.size());
    };
    EXPECT_EQ(first_bad(), halves.size());
    halves.back() = NarrowOne(format, kInfinite);
    EXPECT_EQ(first_bad(), halves.size() - 1);
    for (const size_t at : {19'000u, 8192u, 8191u, 17u, 0u}) {
      halves[at] = NarrowOne(format, at % 2 == 0 ? std::nanf("") : -kInfinite);
      EXPECT_EQ(first_bad(), at);
    }
  }
}

}  // namespace
}  // namespace hdps
