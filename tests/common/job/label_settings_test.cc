// Tests settings for class labels, rows without a label, and the format of cells.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/job/spec/data_spec.h"
#include "tests/common/job/job_samples.h"

namespace hdps {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(LabelSettingsTest, MistakesAreAnsweredWithPlaceValueAndMend) {
  const std::string classes = R"(data.columns=[{"name":"y","type":"label","classes":)";
  const std::string x = R"(},{"name":"x","type":"numeric"}])", mlp = R"(model={"type":"mlp")";
  const auto bad = [](std::vector<std::string> overrides) {
    overrides.insert(overrides.begin(), "data.features=[]");
    return Bad(overrides);
  };
  EXPECT_THAT(bad({classes + R"(["a","b"])" + x, mlp + "}"}),
              AllOf(HasSubstr("\"y\" has texts of classes"), HasSubstr("softmax")));
  EXPECT_THAT(bad({classes + R"(["a","a"])" + x, mlp + ",\"classes\":2}"}),
              HasSubstr("one twice among its classes"));
  EXPECT_THAT(bad({R"(data.columns=[{"name":"x","type":"numeric"},{"name":"c"}])"}),
              AllOf(HasSubstr("0 columns are of type label"), HasSubstr("data.negatives")));
  EXPECT_THAT(Bad({"data.quote=`"}), HasSubstr("data.quote"));
  EXPECT_THAT(Bad({"data.decimal=;"}), HasSubstr("data.decimal"));
}

TEST(LabelSettingsTest, OfRowsThatArePositiveAloneNoColumnIsTheLabel) {
  const Job job = Good({R"(data={"train":["f"],"columns":[{"name":"user"},{"name":"item"}],)"
                        R"("item_features":["item"],"negatives":{"per_positive":4}})"});
  EXPECT_EQ(job.data.negatives.per_positive, 4u);
  EXPECT_EQ(JobDigest(Good({}, PrintJob(job))), JobDigest(job));
  EXPECT_NE(JobDigest(Good({"data.quote="})), JobDigest(Good({})));
}

}  // namespace
}  // namespace hdps
