// Tests jobs on images: their columns, and messages for mistakes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/job/job_facts.h"
#include "common/job/spec/data_spec.h"
#include "tests/common/job/job_samples.h"

namespace hdps {
namespace {

using ::testing::HasSubstr;

constexpr const char* kDigits = R"({
  "data": {"format": "idx", "train": ["train-images-idx3-ubyte"]},
  "model": {"type": "mlp", "classes": 10}})";

TEST(ImageSettingsTest, PixelsAreNumericColumns) {
  const FeatureNames names = FeaturesOf(Good({}, kDigits).data);
  ASSERT_EQ(names.numeric.size(), 784u);
  EXPECT_EQ(names.numeric[783], "pixel783");
  EXPECT_TRUE(names.sparse.empty());
  const Job colours = Good({"data.image_shape=[3,8,8]"}, kDigits);
  EXPECT_EQ(FeaturesOf(colours.data).numeric.size(), 192u);
  EXPECT_EQ(JobDigest(Good({}, PrintJob(colours))), JobDigest(colours));
}

TEST(ImageSettingsTest, ColumnsNameThem) {
  const Job job = Good({R"(data.columns=[{"name": "digit", "type": "label"},
                           {"name": "p", "type": "numeric", "repeat": 784}])"},
                       kDigits);
  EXPECT_EQ(FeaturesOf(job.data).numeric[5], "p5");
  EXPECT_EQ(JobDigest(Good({}, PrintJob(job))), JobDigest(job));
}

TEST(ImageSettingsTest, MistakesAreAnswered) {
  EXPECT_THAT(Bad({"data.image_shape=[]"}, kDigits), HasSubstr("data.image_shape: an image has"));
  EXPECT_THAT(Bad({"data.image_shape=[0,28]"}, kDigits),
              HasSubstr("whole numbers from 1 to 65536"));
  EXPECT_THAT(Bad({"data.image_shape=[65536,65536,65536,65536,65536]"}, kDigits),
              HasSubstr("at most 1048576 are allowed"));
  const std::string label = R"({"name": "digit", "type": "label"})";
  EXPECT_THAT(Bad({"data.columns=[" + label + R"(,{"name": "p", "type": "numeric"}])"}, kDigits),
              HasSubstr("1 numeric columns for images of 784 pixels"));
  EXPECT_THAT(Bad({"data.columns=[" + label + R"(,{"name": "c"}])"}, kDigits),
              HasSubstr("\"c\" is no column of an image"));
  EXPECT_THAT(Good({"data.delimiter=;"}, kDigits).warnings[0],
              HasSubstr("data.delimiter is ignored"));
}

}  // namespace
}  // namespace hdps
