// Tests that a limit of the vector width affects our loops and the library of matrix products.
#include "kernels/vector_width.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "kernels/host/gather_sum.h"
#include "kernels/products/product_library.h"
#include "kernels/products/small_gemm.h"

namespace hdps {
namespace {

// Returns (1 + 2^-12)^2 - 1: a product that is rounded before the sum loses its last bit, 2^-24.
float RoundedByTheLoop(SmallGemmLoop multiply) {
  const std::vector<float> a = {1.0f, 1.0f + 0x1p-12f};
  std::vector<float> b(2 * kSmallProductCols, 1.0f + 0x1p-12f), c(kSmallProductCols);
  for (size_t j = 0; j < kSmallProductCols; ++j) b[j] = -1.0f;
  SmallGemm product;
  product.a = a.data();
  product.a_row = 2;
  product.b = b.data();
  product.b_stride = product.c_stride = product.cols = kSmallProductCols;
  product.c = c.data();
  product.rows = 1;
  product.depth = 2;
  multiply(product);
  return c[0];
}

TEST(VectorWidth, LimitReachesLoopsAndLibrary) {
  const std::string_view ours = VectorWidthName(WidestVectors());
  const std::string_view of_library = VectorWidthName(WidthOfProductLibrary());
  std::printf("figure: vectors of our loops %.*s, of oneDNN %.*s\n", static_cast<int>(ours.size()),
              ours.data(), static_cast<int>(of_library.size()), of_library.data());
  EXPECT_EQ(ours, of_library);
  const char* const limit = std::getenv("HDPS_MAX_VECTOR_WIDTH");
  if (limit != nullptr) {
    EXPECT_EQ(ours, limit);
    EXPECT_EQ(of_library, limit);
  }
}

TEST(VectorWidth, LoopsThatAreChosenAreThoseOfTheWidth) {
  const bool plain = WidestVectors() == VectorWidth::kPlain;
  EXPECT_EQ(GatherLoopsOfThisMachine().add_segments == PlainGatherLoops().add_segments, plain);
  EXPECT_EQ(SmallGemmOfThisMachine() == PlainSmallProduct(), plain);
  EXPECT_EQ(RoundedByTheLoop(PlainSmallProduct()), 0x1p-11f);
  EXPECT_EQ(RoundedByTheLoop(SmallGemmOfThisMachine()), plain ? 0x1p-11f : 0x1p-11f + 0x1p-24f);
}

// Sets an environment variable for the life of the object, and then restores it.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* const before = std::getenv(name)) before_ = before;
    setenv(name, value, 1);
  }
  ~Variable() {
    if (before_) {
      setenv(name_, before_->c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* const name_;
  std::optional<std::string> before_;
};

TEST(VectorWidthDeathTest, AValueThatIsNoneIsRefusedByName) {
  // The variable is read once per process, so a new process reads the mistake.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  {
    const Variable limit("HDPS_MAX_VECTOR_WIDTH", "avx1024");
    EXPECT_EXIT(WidestVectors(), testing::ExitedWithCode(2),
                "HDPS_MAX_VECTOR_WIDTH is 'avx1024': plain, avx2 or avx512");
  }
  const Variable widened("HDPS_WIDENED_BF16", "yes");
  EXPECT_EXIT(WidenedBf16Asked(), testing::ExitedWithCode(2), "HDPS_WIDENED_BF16 is 'yes': 0 or 1");
}

}  // namespace
}  // namespace hdps
