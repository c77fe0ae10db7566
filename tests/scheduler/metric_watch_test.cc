// Tests which evaluation is the best, when patience runs out, and when rates fall.
#include "scheduler/plan/metric_watch.h"
#include "common/job/job_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/train_spec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace hdps {
namespace {

Job WatchedJob() {
  Job job;
  job.data.eval = {"eval.csv"};
  job.data.eval_sets = {{"late", {"late.csv"}}};
  return job;
}

struct Evaluated {
  double auc, logloss;
};

FigureOfSet FiguresOf(const std::vector<Evaluated>& by_set) {
  return [by_set](size_t set, std::string_view metric) {
    return metric == "auc" ? by_set.at(set).auc : by_set.at(set).logloss;
  };
}

// Returns the figures of two sets; the second has the decisive ones if a test says so.
std::vector<Evaluated> Figures(double auc, double logloss = 0.5, double late_auc = 0.5) {
  return {{auc, logloss}, {late_auc, 0.7}};
}

// Returns one letter per evaluation: b best, s stop, r rates fell, . nothing.
std::string Play(RunWatches& watches, const std::vector<std::vector<Evaluated>>& evaluations,
                 Clock first = 10) {
  std::string trace;
  Clock clock = first;
  for (const std::vector<Evaluated>& evaluation : evaluations) {
    const RunWatches::Verdict verdict = watches.Take(FiguresOf(evaluation), clock);
    clock += 10;
    if (verdict.best) trace += "b";
    if (verdict.stop) trace += "s";
    if (verdict.rate_fell) trace += "r";
    trace += ".";
  }
  return trace;
}

TEST(MetricWatchTest, TheBestIsWhatIsGreaterAndPatienceCountsTheRest) {
  Job job = WatchedJob();
  job.train.early_stop.patience = 2;
  RunWatches watches(job, {});
  EXPECT_EQ(Play(watches,
                 {Figures(.7), Figures(.8), Figures(.8), Figures(.81), Figures(.8), Figures(.805)}),
            "b.b..b..s.");
  EXPECT_TRUE(watches.out_of_patience());
  EXPECT_EQ(watches.state().best.best_clock, 40);
  EXPECT_EQ(watches.state().best_auc, .81);
  EXPECT_EQ(watches.WhyEnded(),
            "auc was no better than 0.810000, that of step 40, in 2 evaluations");
}

TEST(MetricWatchTest, OfLoglossLessIsBetterAndAnUndefinedFigureIsNot) {
  Job job = WatchedJob();
  job.train.early_stop = {.metric = "logloss", .set = "", .patience = 3, .min_delta = 0};
  RunWatches watches(job, {});
  EXPECT_EQ(
      Play(watches, {Figures(.5, std::nan("")), Figures(.5, .6), Figures(.9, .61), Figures(.1, .59),
                     Figures(.9, .59), Figures(.9, std::nan("")), Figures(.9, .6)}),
      ".b..b...s.");
}

TEST(MetricWatchTest, ALittleBetterIsKeptButDoesNotCountForPatience) {
  Job job = WatchedJob();
  job.train.early_stop.patience = 2;
  job.train.early_stop.min_delta = 0.01;
  RunWatches watches(job, {});
  EXPECT_EQ(Play(watches, {Figures(.8), Figures(.805), Figures(.809)}), "b.b.bs.");
  EXPECT_EQ(watches.state().best.best_clock, 30);
  EXPECT_EQ(watches.state().early_stop.best_clock, 10);
}

TEST(MetricWatchTest, AnotherSetMayBeWatched) {
  Job job = WatchedJob();
  job.train.early_stop.patience = 1;
  job.train.early_stop.set = "late";
  RunWatches watches(job, {});
  EXPECT_EQ(Play(watches, {Figures(.9, .5, .6), Figures(.8, .5, .7), Figures(.95, .5, .6)}),
            "b.b.s.");
  EXPECT_EQ(watches.state().best_auc, .8) << "what is reported of the best is of the first set";
}

TEST(MetricWatchTest, RatesFallAgainAndAgainDownToTheLeast) {
  Job job = WatchedJob();
  job.train.plateau.patience = 2;
  job.train.plateau.factor = 0.5;
  job.train.plateau.least = 0.2;
  RunWatches watches(job, {});
  const std::vector<std::vector<Evaluated>> same(9, Figures(.8));
  EXPECT_EQ(Play(watches, same), "b..r..r..r...");
  EXPECT_EQ(watches.state().rate, 0.2);
}

// Returns the figures of evaluations 1 to `count`, up and down.
std::vector<std::vector<Evaluated>> Wave(int count) {
  std::vector<std::vector<Evaluated>> all;
  for (int i = 1; i <= count; ++i) all.push_back(Figures(.8 + .05 * std::sin(i * i), .5));
  return all;
}

TEST(MetricWatchTest, WhoTakesOverAnywhereDecidesTheSame) {
  Job job = WatchedJob();
  job.train.early_stop.patience = 30;
  job.train.plateau.patience = 3;
  RunWatches whole(job, {});
  const auto evaluations = Wave(20);
  const std::string trace = Play(whole, evaluations);
  EXPECT_NE(trace.find('r'), std::string::npos);
  for (size_t cut = 0; cut <= evaluations.size(); ++cut) {
    RunWatches first(job, {});
    const std::string before = Play(first, {evaluations.begin(), evaluations.begin() + cut});
    const Result<Watched> kept = ParseWatched(PrintWatched(first.state()));
    ASSERT_TRUE(kept.ok()) << kept.status().message();
    RunWatches second(job, *kept);
    const Clock next = 10 * static_cast<Clock>(cut) + 10;
    // A figure that was taken before counts once, as when a finished job is evaluated again.
    if (cut > 0) {
      const RunWatches::Verdict again = second.Take(FiguresOf(evaluations[cut - 1]), next - 10);
      EXPECT_FALSE(again.best || again.rate_fell);
    }
    EXPECT_EQ(before + Play(second, {evaluations.begin() + cut, evaluations.end()}, next), trace);
    EXPECT_EQ(second.state(), whole.state());
  }
}

TEST(MetricWatchTest, FiguresOfAnotherMetricAreNotCompared) {
  Job job = WatchedJob();
  job.train.early_stop.patience = 5;
  RunWatches by_auc(job, {});
  Play(by_auc, {Figures(.8, .4)});
  job.train.early_stop.metric = "logloss";
  RunWatches by_logloss(job, by_auc.state());
  EXPECT_EQ(by_logloss.state().best.best_clock, -1);
  EXPECT_TRUE(by_logloss.Take(FiguresOf(Figures(.8, .6)), 20).best);
}

TEST(MetricWatchTest, StatesThatMakeNoSenseAreRefused) {
  const std::string good = PrintWatched({});
  ASSERT_TRUE(ParseWatched(good).ok());
  const auto with = [&good](const std::string& from, const std::string& to) {
    std::string text = good;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  for (const std::string& bad :
       {std::string("{}"), with("\"rate\":1.0", "\"rate\":0"), with("\"rate\":1.0", "\"rate\":2"),
        with("\"best_clock\":-1", "\"best_clock\":7"), with("\"of\":\"\"", "\"of\":1"),
        with("\"since\":0", "\"since\":-1"), with("\"since\":0", "\"since\":4294967296"),
        with("\"last_clock\":-1", "\"last_clock\":-144444444444444444444444444444")}) {
    EXPECT_EQ(ParseWatched(bad).status().code(), Code::kCorruption) << bad;
  }
}

}  // namespace
}  // namespace hdps
