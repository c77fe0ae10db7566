// Tests what a job does at each boundary, as one line of steps per run.
#include "scheduler/plan/job_plan.h"
#include "common/job/job_spec.h"
#include "common/job/spec/checkpoint_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/train_spec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

namespace hdps {
namespace {

Job MakeJob(uint32_t epochs, uint64_t max_steps, uint64_t every, bool evaluation = true) {
  Job job;
  job.train.epochs = epochs;
  job.train.max_steps = max_steps;
  job.checkpoint.every_steps = every;
  if (evaluation) job.data.eval = {"eval.csv"};
  return job;
}

// Plays a plan over epochs of `steps_per_epoch`; "T10" trains to 10, "|" ends an epoch there, "s"
// saves everything, "c" may save changes.
std::string Play(JobPlan& plan, Clock steps_per_epoch, Clock stop_at = -1) {
  std::string trace;
  for (int turn = 0; turn < 1000; ++turn) {
    switch (plan.next()) {
      case JobStep::kTrain: {
        const Clock end = plan.position().epoch_start + steps_per_epoch;
        Clock to = std::min(end, plan.until());
        if (stop_at >= plan.position().clock && stop_at < to) {
          to = stop_at;
          plan.Stop();
        }
        trace += "T" + std::to_string(to) + (to == end ? "|" : "");
        plan.Trained(to, to == end);
        break;
      }
      case JobStep::kStoreDense:
        trace += "d";
        plan.Done();
        break;
      case JobStep::kEvaluate:
        trace += "e";
        plan.Done();
        break;
      case JobStep::kDigest:
        trace += "#";
        plan.Done();
        break;
      case JobStep::kSave:
        trace += plan.full_save() ? "s" : "c";
        plan.Done();
        break;
      case JobStep::kFinish:
        return trace + "F";
    }
    trace += " ";
  }
  return trace + "never finished";
}

std::string PlayFresh(const Job& job, Clock steps_per_epoch, Clock stop_at = -1) {
  JobPlan plan(job, JobPosition(), JobPlan::Past());
  return Play(plan, steps_per_epoch, stop_at);
}

TEST(JobPlan, EvaluatesEachEpochAndSavesAtTheEnd) {
  EXPECT_EQ(PlayFresh(MakeJob(2, 0, 0), 10), "T10| e T20| e # s F");
  EXPECT_EQ(PlayFresh(MakeJob(2, 0, 0, false), 10), "T10| T20| # s F");
  Job at_the_end = MakeJob(2, 0, 0);
  at_the_end.train.eval_each_epoch = false;
  EXPECT_EQ(PlayFresh(at_the_end, 10), "T10| T20| e # s F");
}

TEST(JobPlan, EvaluatesEverySoManySteps) {
  Job job = MakeJob(2, 0, 0);
  job.train.eval_every_steps = 4;
  EXPECT_EQ(PlayFresh(job, 10), "T4 e T8 e T10| e T12 e T16 e T20| e # s F");
  JobPlan stopped(job, JobPosition(), JobPlan::Past());
  stopped.Stop();
  stopped.Trained(4, /*end_of_epoch=*/false);
  EXPECT_EQ(stopped.next(), JobStep::kDigest) << "who stops a job wants it to end soon";
  job.train.eval_each_epoch = false;
  job.checkpoint.every_steps = 6;
  EXPECT_EQ(PlayFresh(job, 10), "T4 e T6 s T8 e T10| T12 e s T16 e T18 s T20| e # s F");
  job.data.eval.clear();
  EXPECT_EQ(PlayFresh(job, 10), "T6 s T10| T12 s T18 s T20| # s F");
}

// Nothing is due there: the round ends so that the workers answer.
TEST(JobPlan, TrainsToTheEndOfEachProgressiveWindow) {
  Job job = MakeJob(2, 0, 0);
  job.train.batch_size = 100;
  job.train.progressive.window = 301;
  EXPECT_EQ(PlayFresh(job, 10), "T4 T8 T10| e T12 T16 T20| e # s F");
}

TEST(JobPlan, EvaluatesOnceWhereStepsAndAnEpochEndTogether) {
  Job job = MakeJob(2, 0, 0);
  job.train.eval_every_steps = 5;
  JobPlan plan(job, JobPosition(), JobPlan::Past());
  for (const Clock end : {10, 20}) {
    plan.Trained(end, /*end_of_epoch=*/false);  // The end of the data is not known yet.
    ASSERT_EQ(plan.next(), JobStep::kEvaluate);
    plan.Evaluated(/*best=*/false, /*enough=*/false);
    plan.Done();
    ASSERT_EQ(plan.next(), JobStep::kTrain);
    plan.Trained(end, /*end_of_epoch=*/true);
    EXPECT_EQ(plan.next(), end == 20 ? JobStep::kDigest : JobStep::kTrain);
  }
}

TEST(JobPlan, SavesAtBoundaries) {
  EXPECT_EQ(PlayFresh(MakeJob(2, 0, 4), 10), "T4 s T8 s T10| e T12 s T16 s T20| e # s F");
  EXPECT_EQ(PlayFresh(MakeJob(2, 0, 10), 10), "T10| e s T20| e # s F");
}

TEST(JobPlan, SavesChangesBetweenThem) {
  Job job = MakeJob(2, 0, 8);
  job.checkpoint.delta_every_steps = 4;
  EXPECT_EQ(PlayFresh(job, 10), "T4 c T8 s T10| e T12 c T16 s T20| e # s F");
  job.checkpoint.every_steps = 0;
  EXPECT_EQ(PlayFresh(job, 10), "T4 c T8 c T10| e T12 c T16 c T20| e # s F");
  EXPECT_EQ(PlayFresh(job, 10, 6), "T4 c T6 # s F");
  job.checkpoint.every_steps = 6;
  EXPECT_EQ(PlayFresh(job, 12), "T4 c T6 s T8 c T12| e s T16 c T18 s T20 c T24| e # s F");
  job.parallel.dense_exchange = DenseExchange::kAllreduce;
  job.data.eval.clear();
  EXPECT_EQ(PlayFresh(job, 8), "T4 d c T6 d s T8| d c T12 d s T16| d # s F");
}

TEST(JobPlan, MaxStepsEndsTheJobAnywhere) {
  EXPECT_EQ(PlayFresh(MakeJob(5, 7, 0), 10), "T7 e # s F");
  EXPECT_EQ(PlayFresh(MakeJob(5, 13, 0), 10), "T10| e T13 e # s F");
  EXPECT_EQ(PlayFresh(MakeJob(1, 100, 0), 10), "T10| e # s F");
  EXPECT_EQ(PlayFresh(MakeJob(5, 8, 4), 10), "T4 s T8 e # s F");
}

TEST(JobPlan, UnderAllreduceTheDenseRowsAreStoredBeforeTheyAreNeeded) {
  Job job = MakeJob(2, 0, 4);
  job.parallel.dense_exchange = DenseExchange::kAllreduce;
  EXPECT_EQ(PlayFresh(job, 10), "T4 d s T8 d s T10| d e T12 d s T16 d s T20| d e # s F");
}

TEST(JobPlan, StoppedItSavesWhereItStandsAndEvaluatesNothing) {
  EXPECT_EQ(PlayFresh(MakeJob(2, 0, 0), 10, 3), "T3 # s F");
  EXPECT_EQ(PlayFresh(MakeJob(2, 0, 4), 10, 11), "T4 s T8 s T10| e T11 # s F");
}

TEST(JobPlan, StoppedWhileSomethingElseGoesOnItStillEnds) {
  JobPlan plan(MakeJob(2, 0, 10), JobPosition(), JobPlan::Past());
  plan.Trained(10, true);
  ASSERT_EQ(plan.next(), JobStep::kEvaluate);
  plan.Stop();
  plan.Done();
  ASSERT_EQ(plan.next(), JobStep::kSave);
  plan.Done();
  EXPECT_EQ(Play(plan, 10), "# F");  // The last step is saved already.
}

// Changes may be lost with the machine's power; the end of a run may not.
TEST(JobPlan, StoppedWhereChangesWereSavedItSavesAll) {
  Job job = MakeJob(2, 0, 0);
  job.checkpoint.delta_every_steps = 4;
  JobPlan plan(job, JobPosition(), JobPlan::Past());
  plan.Trained(4, /*end_of_epoch=*/false);
  ASSERT_EQ(plan.next(), JobStep::kSave);
  ASSERT_FALSE(plan.full_save());
  plan.Stop();
  plan.Done();
  EXPECT_EQ(Play(plan, 10), "# s F");
}

TEST(JobPlan, AStopThatIsForgottenEndsNothing) {
  JobPlan plan(MakeJob(1, 0, 0), JobPosition(), JobPlan::Past());
  plan.Stop();
  plan.Trained(4, /*end_of_epoch=*/false);
  ASSERT_EQ(plan.next(), JobStep::kDigest);
  JobPlan saved = plan;
  saved.Done();
  saved.Done();
  ASSERT_EQ(saved.next(), JobStep::kFinish);
  for (JobPlan* each : {&plan, &saved}) each->ForgetStop();
  EXPECT_EQ(Play(plan, 10), "s T10| e # s F");
  EXPECT_EQ(Play(saved, 10), "T10| e # s F");
  JobPlan finished(MakeJob(1, 0, 0), JobPosition(), JobPlan::Past());
  finished.Stop();
  finished.Trained(10, /*end_of_epoch=*/true);
  finished.ForgetStop();
  EXPECT_EQ(Play(finished, 10), "e # s F") << "it has nothing left to train";
}

TEST(JobPlan, GoesOnFromACheckpoint) {
  JobPlan middle(MakeJob(2, 0, 0), JobPosition{13, 1, 10}, JobPlan::Past{.loaded = true});
  EXPECT_EQ(Play(middle, 10), "T20| e # s F");
  // Saved at the end of an epoch before the end was noticed.
  JobPlan edge(MakeJob(2, 0, 4), JobPosition{10, 0, 0}, JobPlan::Past{.loaded = true});
  EXPECT_EQ(Play(edge, 10), "T10| e T12 s T16 s T20| e # s F");
}

TEST(JobPlan, AFinishedJobIsEvaluatedAndNotSavedAgain) {
  JobPlan plan(MakeJob(2, 0, 4), JobPosition{20, 2, 20}, JobPlan::Past{.loaded = true});
  EXPECT_TRUE(plan.finished());
  EXPECT_EQ(Play(plan, 10), "e # F");
  Job allreduce = MakeJob(2, 0, 4);
  allreduce.parallel.dense_exchange = DenseExchange::kAllreduce;
  JobPlan again(allreduce, JobPosition{20, 2, 20}, JobPlan::Past{.loaded = true});
  EXPECT_EQ(Play(again, 10), "e # F");
}

TEST(JobPlan, AFailedSaveIsTriedAgainAtTheEnd) {
  JobPlan plan(MakeJob(1, 8, 4), JobPosition(), JobPlan::Past());
  plan.Trained(4, false);
  ASSERT_EQ(plan.next(), JobStep::kSave);
  plan.Stop();
  plan.Done(JobPlan::Outcome::kFailed);
  EXPECT_EQ(Play(plan, 10), "# s F");
}

// Plays a plan with results of evaluations: the b-th is the best if `best` has it, and after the
// `enough`-th the job ends.
std::string PlayJudged(JobPlan plan, Clock steps_per_epoch, const std::set<int>& best,
                       int enough = -1) {
  std::string trace;
  int evaluations = 0;
  for (int turn = 0; turn < 1000 && plan.next() != JobStep::kFinish; ++turn) {
    if (plan.next() == JobStep::kTrain) {
      const Clock end = plan.position().epoch_start + steps_per_epoch;
      const Clock to = std::min(end, plan.until());
      trace += "T" + std::to_string(to) + " ";
      plan.Trained(to, to == end);
      continue;
    }
    const JobStep step = plan.next();
    trace += step == JobStep::kEvaluate     ? "e "
             : step == JobStep::kStoreDense ? "d "
             : step == JobStep::kDigest     ? "# "
             : plan.full_save()             ? "s "
                                            : "c ";
    if (step == JobStep::kEvaluate) {
      ++evaluations;
      plan.Evaluated(best.contains(evaluations), evaluations == enough);
    }
    plan.Done();
  }
  return trace + "F";
}

TEST(JobPlan, TheBestIsSavedBehindItsEvaluationAndOnce) {
  Job job = MakeJob(3, 0, 0);
  const JobPlan plan(job, JobPosition(), JobPlan::Past());
  EXPECT_EQ(PlayJudged(plan, 10, {1, 3}), "T10 e s T20 e T30 e # s F");
  EXPECT_EQ(PlayJudged(JobPlan(MakeJob(1, 0, 0), JobPosition(), JobPlan::Past()), 10, {1}),
            "T10 e # s F")
      << "a job of one epoch is saved once";
  job.checkpoint.every_steps = 10;
  job.checkpoint.delta_every_steps = 5;
  EXPECT_EQ(PlayJudged(JobPlan(job, JobPosition(), JobPlan::Past()), 10, {1}),
            "T5 c T10 e s T15 c T20 e s T25 c T30 e # s F");
  job.checkpoint.every_steps = 0;
  EXPECT_EQ(PlayJudged(JobPlan(job, JobPosition(), JobPlan::Past()), 10, {1}),
            "T5 c T10 e s T15 c T20 e c T25 c T30 e # s F")
      << "the best is whole, where changes alone were due";
  job.checkpoint.delta_every_steps = 0;
  job.checkpoint.keep_best = false;
  EXPECT_EQ(PlayJudged(JobPlan(job, JobPosition(), JobPlan::Past()), 10, {1, 2}),
            "T10 e T20 e T30 e # s F");
  job.checkpoint.keep_best = true;
  job.parallel.dense_exchange = DenseExchange::kAllreduce;
  EXPECT_EQ(PlayJudged(JobPlan(job, JobPosition(), JobPlan::Past()), 10, {1}),
            "T10 d e s T20 d e T30 d e # s F");
}

TEST(JobPlan, EvaluationsMayEndTheJob) {
  const Job job = MakeJob(9, 0, 0);
  EXPECT_EQ(PlayJudged(JobPlan(job, JobPosition(), JobPlan::Past()), 10, {1}, 3),
            "T10 e s T20 e T30 e # s F");
  // As after a resume: only the evaluation is left.
  JobPlan ended(job, JobPosition{30, 3, 30},
                JobPlan::Past{.loaded = true, .out_of_patience = true});
  EXPECT_TRUE(ended.finished());
  EXPECT_EQ(PlayJudged(ended, 10, {}, 1), "e # F");
}

TEST(JobPlan, EvaluatesAtPartsOfAnEpoch) {
  Job job = MakeJob(2, 0, 0);
  job.train.batch_size = 10;
  job.train.evals_per_epoch = 3;
  job.train.eval_each_epoch = false;
  const JobPlan plan(job, JobPosition(), JobPlan::Past{.epoch_rows = 95});
  EXPECT_EQ(PlayJudged(plan, 10, {}), "T3 e T6 e T10 e T13 e T16 e T20 e # s F");
  job.train.evals_per_epoch = 30;  // More than there are steps.
  EXPECT_EQ(PlayJudged(JobPlan(job, JobPosition(), JobPlan::Past{.epoch_rows = 15}), 2, {}),
            "T1 e T2 e T3 e T4 e # s F");
}

TEST(JobPlan, SavesAtTheEndOfEverySoManyEpochs) {
  Job job = MakeJob(5, 0, 0, false);
  job.checkpoint.every_epochs = 2;
  EXPECT_EQ(PlayFresh(job, 10), "T10| T20| s T30| T40| s T50| # s F");
}

TEST(JobPlan, AnEvaluationThatAStopHasSkippedComesFirst) {
  const Job job = MakeJob(3, 0, 0);
  const JobPlan skipped(job, JobPosition{10, 1, 10}, JobPlan::Past{.loaded = true, .evaluated = 5});
  EXPECT_EQ(PlayJudged(skipped, 10, {1}), "e T20 e T30 e # s F") << "the best is loaded already";
  const JobPlan done(job, JobPosition{10, 1, 10}, JobPlan::Past{.loaded = true, .evaluated = 10});
  EXPECT_EQ(PlayJudged(done, 10, {}), "T20 e T30 e # s F");
}

TEST(JobPlan, AnotherProcessGoesOnInTheMiddleOfWhatIsDue) {
  JobPlan plan(MakeJob(9, 0, 0), JobPosition(), JobPlan::Past());
  plan.Trained(10, true);
  plan.Evaluated(/*best=*/true, /*enough=*/true);
  plan.Done();
  const JobPlan next(MakeJob(9, 0, 0), plan.state(), 0);
  EXPECT_TRUE(next.finished());
  EXPECT_EQ(PlayJudged(next, 10, {}), "# s F");
}

}  // namespace
}  // namespace hdps
