// Tests how paths of requests are read.
#include "tools/serve/front/model_target.h"

#include <gmock/gmock.h>

namespace hdps {
namespace {

struct Case {
  TargetForm form;
  std::string path;
  std::string model;  // Empty: it is no path.
  Clock step = kNoClock;
  std::string verb = "";
};

TEST(ModelTargetTest, PathsOfBothProtocols) {
  const TargetForm v2 = kInferTargets, v1 = kPredictTargets;
  for (const Case& one : std::vector<Case>{
           {v2, "/v2/models/census", "census"},
           {v2, "/v2/models/census/infer", "census", kNoClock, "infer"},
           {v2, "/v2/models/a.b-c_1/versions/512", "a.b-c_1", 512},
           {v2, "/v2/models/census/versions/0/ready", "census", 0, "ready"},
           {v2, "/v2/models/versions/infer", "versions", kNoClock, "infer"},
           {v1, "/v1/models/census", "census"},
           {v1, "/v1/models/census:predict", "census", kNoClock, "predict"},
           {v1, "/v1/models/census/versions/512:lookup", "census", 512, "lookup"},
           {v1, "/v1/models/census/versions/9223372036854775807", "census", INT64_MAX},
           {v2, "/v2/models/", ""},
           {v2, "/v2/models//infer", ""},
           {v2, "/v2/models/census/", ""},
           {v2, "/v2/models/census:infer", ""},
           {v2, "/v2/models/census/versions/", ""},
           {v2, "/v2/models/census/versions/newest", ""},
           {v2, "/v2/models/census/versions/-1", ""},
           {v2, "/v2/models/census/versions/5x/infer", ""},
           {v2, "/v2/models/census/versions/9223372036854775808", ""},
           {v2, "/v2/models/a%20b", ""},
           {v2, "/v2/models/../secret", "..", kNoClock, "secret"},
           {v1, "/v1/models/census:", ""},
           {v1, "/v1/models/census/predict", ""},
           {v1, "/v1/models/:predict", ""}}) {
    const Result<ModelTarget> target = ReadTarget(one.form, one.path);
    ASSERT_EQ(target.ok(), !one.model.empty()) << one.path;
    if (!target.ok()) {
      EXPECT_EQ(target.status().code(), Code::kNotFound) << one.path;
      EXPECT_THAT(target.status().message(), ::testing::HasSubstr("/models/NAME/versions/STEP"));
      continue;
    }
    EXPECT_EQ(target->model, one.model) << one.path;
    EXPECT_EQ(target->step, one.step) << one.path;
    EXPECT_EQ(target->verb, one.verb) << one.path;
  }
}

TEST(ModelTargetTest, NamesOfModels) {
  EXPECT_TRUE(IsModelName("census-2.b_C"));
  EXPECT_TRUE(IsModelName(std::string(128, 'a')));
  for (const std::string& wrong :
       {std::string(), std::string(129, 'a'), std::string("a b"), std::string("a/b"),
        std::string("a:b"), std::string("caf\xc3\xa9"), std::string("a%20b")}) {
    EXPECT_FALSE(IsModelName(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace hdps
