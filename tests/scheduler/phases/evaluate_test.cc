// Tests evaluation sets in turn, and the decisions that follow from their figures.
#include "scheduler/phases/evaluate.h"

#include <span>
#include <vector>

#include "common/job/job_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/train_spec.h"
#include "tests/scheduler/phases/phase_fixture.h"

namespace hdps {
namespace {

using What = Next::What;

CommandDone Scored(const std::vector<float>& scores, const std::vector<float>& labels) {
  CommandDone done;
  done.examples = scores.size();
  done.loss_sum = 0.5;
  done.weight_sum = static_cast<double>(scores.size());
  done.scores = Buffer::CopyOf(std::span<const float>(scores));
  done.labels = Buffer::CopyOf(std::span<const float>(labels));
  return done;
}

class EvaluatePhaseTest : public PhaseTest {
 protected:
  EvaluatePhaseTest() { PlanBehindAnEpoch(); }
};

TEST_F(EvaluatePhaseTest, WhoHasMoreIsAskedForItAndTheFiguresAreTheJobs) {
  EvaluatePhase evaluate(parts_);
  EXPECT_EQ(Begin(evaluate).what, What::kWait);
  EXPECT_EQ(told(), "21: evaluate, 22: evaluate");
  CommandDone first = Scored({0.75f}, {1});
  first.more = true;
  Done(evaluate, kWorkers[0], first);
  EXPECT_EQ(told(), "21: evaluate");
  EXPECT_TRUE(orders_.sent.back().command.next);
  Done(evaluate, kWorkers[0], Scored({0.5f}, {0}));
  Done(evaluate, kWorkers[1], Scored({0.25f}, {0}));
  EXPECT_EQ(AllAnswered(evaluate).what, What::kDone);
  ASSERT_TRUE(job_.record.summary.evaluation);
  EXPECT_EQ(job_.record.summary.evaluation->examples, 3u);
  EXPECT_EQ(job_.record.summary.evaluation->auc, 1.0);
  EXPECT_EQ(job_.plan->next(), JobStep::kTrain);  // The second epoch.
  EXPECT_EQ(job_.watches.state().best.best_clock, 10);
}

Job TwoSets() {
  Job job;
  job.name = "sets";
  job.cluster.shards = 4;
  job.train.epochs = 1;
  job.data.eval = {"eval.csv"};
  job.data.eval_sets = {{.name = "late", .files = {"late.csv"}}};
  return job;
}

class TwoSetsTest : public PhaseTest {
 protected:
  TwoSetsTest() : PhaseTest(TwoSets()) { PlanBehindAnEpoch(); }
};

TEST_F(TwoSetsTest, TheSecondSetFollowsTheFirst) {
  EvaluatePhase evaluate(parts_);
  Begin(evaluate);
  EXPECT_EQ(orders_.sent.back().command.eval_set, "");
  Done(evaluate, kWorkers[0], Scored({0.75f, 0.5f}, {1, 0}));
  const Next next = AllAnswered(evaluate);
  EXPECT_EQ(next.what, What::kAgain);
  EXPECT_EQ(next.phase, JobPhase::kEvaluate);
  Begin(evaluate);
  EXPECT_EQ(orders_.sent.back().command.eval_set, "late");
  Done(evaluate, kWorkers[0], Scored({0.25f, 0.5f}, {1, 0}));
  EXPECT_EQ(AllAnswered(evaluate).what, What::kDone);
  ASSERT_EQ(job_.record.summary.eval_sets.size(), 2u);
  EXPECT_EQ(job_.record.summary.eval_sets[1].first, "late");
  EXPECT_EQ(job_.record.summary.evaluation->auc, 1.0);
}

}  // namespace
}  // namespace hdps
