// Tests the findings about suspicious labels, in the order in which a run meets them.
#include "scheduler/report/label_watch.h"
#include "common/job/job_spec.h"
#include "common/job/spec/data_spec.h"

#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hdps {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Job JobWith(std::vector<std::string> positive, bool has_evaluation = true) {
  Job job;
  ColumnSpec label;
  label.name = "income";
  label.type = ColumnType::kLabel;
  label.positive = std::move(positive);
  job.data.columns = {label};
  if (has_evaluation) job.data.eval = {"eval.csv"};
  return job;
}

constexpr LabelTally kBoth = {1000, 0, 1, 0b1};

TEST(LabelWatchTest, GoodLabelsAreNoNews) {
  LabelWatch watch(JobWith({">50K", ">50K."}));
  EXPECT_THAT(watch.Trained(kBoth, false), IsEmpty());
  EXPECT_THAT(watch.Trained(kBoth, true), IsEmpty()) << "the second text may be the evaluation's";
  EXPECT_THAT(watch.Evaluated({500, 0, 1, 0b10}), IsEmpty());
  EXPECT_THAT(watch.Trained(kBoth, true), IsEmpty());
}

TEST(LabelWatchTest, ATextThatNoLabelHasIsNamedOnce) {
  LabelWatch watch(JobWith({">50K", ">5OK."}));
  EXPECT_THAT(watch.Trained(kBoth, true), IsEmpty());
  EXPECT_THAT(watch.Evaluated({500, 0, 1, 0b1}),
              ElementsAre(AllOf(HasSubstr("\">5OK.\" of column \"income\""),
                                HasSubstr("none of the 1,500 labels"))));
  EXPECT_THAT(watch.Evaluated({500, 0, 1, 0b1}), IsEmpty());
}

TEST(LabelWatchTest, WhereEveryLabelIsZeroTheFirstEpochSaysSo) {
  LabelWatch watch(JobWith({">5OK"}));
  EXPECT_THAT(watch.Trained({400, 0, 0, 0}, false), IsEmpty());
  EXPECT_THAT(watch.Trained({600, 0, 0, 0}, true),
              ElementsAre(HasSubstr("all 1,000 training labels are 0"), HasSubstr("\">5OK\"")));
  EXPECT_THAT(watch.Evaluated({500, 0, 0, 0}),
              ElementsAre(HasSubstr("all 500 evaluation labels are 0")));
}

TEST(LabelWatchTest, WeightsThatAreAllZeroAreSaid) {
  Job job = JobWith({});
  job.data.columns.emplace_back();
  job.data.columns.back().name = "importance";
  job.data.columns.back().type = ColumnType::kWeight;
  LabelWatch watch(job);
  const LabelTally weightless = {.weightless = 600};
  EXPECT_THAT(watch.Trained(weightless, false), IsEmpty());
  EXPECT_THAT(watch.Trained(weightless, true),
              ElementsAre(AllOf(HasSubstr("all 1,200 training weights"),
                                HasSubstr("column \"importance\""))));
  EXPECT_THAT(watch.Evaluated(weightless), ElementsAre(HasSubstr("all 600 evaluation weights")));
  LabelWatch one_class(job);
  EXPECT_THAT(one_class.Trained({.count = 40, .least = 1, .largest = 1, .weightless = 60}, true),
              ElementsAre(HasSubstr("all 40 training labels with a weight are 1")));
}

TEST(LabelWatchTest, WithoutAnEvaluationTextsAreAskedForAfterTheFirstEpoch) {
  LabelWatch watch(JobWith({">50K", ">50K."}, false));
  EXPECT_THAT(watch.Trained(kBoth, true), ElementsAre(HasSubstr("\">50K.\"")));
}

TEST(LabelWatchTest, AnEvaluationBeforeTheEndOfAnEpochLooksAtWhatWasTrained) {
  LabelWatch watch(JobWith({}));
  EXPECT_THAT(watch.Trained({40, 3, 3, 0}, false), IsEmpty());
  EXPECT_THAT(watch.Evaluated(kBoth), ElementsAre(HasSubstr("all 40 training labels are 3")));
  EXPECT_THAT(watch.Trained({40, 3, 3, 0}, true), IsEmpty()) << "it was said";
}

TEST(LabelWatchTest, WithoutTrainingATextMayBeThatOfTheTrainingFiles) {
  LabelWatch watch(JobWith({">50K", ">50K."}));
  EXPECT_THAT(watch.Evaluated({500, 0, 1, 0b10}), IsEmpty());
  LabelWatch wrong(JobWith({">5OK"}));
  EXPECT_THAT(wrong.Evaluated({500, 0, 0, 0}),
              ElementsAre(HasSubstr("evaluation labels are 0"), HasSubstr("\">5OK\"")));
}

TEST(LabelWatchTest, TextsBeyondThoseThatATallyCountsAreNotAskedFor) {
  LabelWatch watch(JobWith(std::vector<std::string>(100, "x"), false));
  EXPECT_THAT(watch.Trained({1, 0, 1, ~uint64_t{0}}, true), IsEmpty());
}

}  // namespace
}  // namespace hdps
