// Tests whole jobs by what their members count: no figure stays at zero that a job has, and those
// that can be known beforehand are right.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/job/job_spec.h"
#include "common/job/tables/figure_tables.h"
#include "common/telemetry/member_watch.h"
#include "common/telemetry/samples.h"
#include "tests/worker/role/small_job.h"
#include "tools/synthetic/zipf.h"

namespace hdps {
namespace {

std::string Rows(uint64_t count, uint64_t seed) {
  const Zipf zipf(60, 1.1);
  return SmallRows(count, seed, [&](Random& random, uint64_t row) {
    const uint64_t a = zipf.Draw(random);
    return std::pair(a, zipf.Draw(random) + (row < count / 2 ? 0 : 40));
  });
}

// Figures that the system sets for a process, which here has several members.
bool IsOfProcess(const Sample& sample) {
  return RecordOf(sample.figure).role == FigureRole::kProcess;
}

class FiguresJobTest : public SmallJobTest {
 protected:
  FiguresJobTest()
      : SmallJobTest({"data.max_bad_rows=1", "train.batch_size=20"},
                     "1,not a number,a1,b1\n" + Rows(330, 1), Rows(101, 2)) {
    Watch([this](Role role, uint32_t rank) { return &WatchOf(role, rank); });
  }
  MemberWatch& WatchOf(Role role, uint32_t rank) {
    const MutexLock lock(mutex_);
    return watches_[{role, rank}];
  }
  // Runs a job, and takes the last figures of all its members, added by role.
  nlohmann::json Run(const ClusterSize& cluster, const Overrides& overrides) {
    watches_.clear();
    nlohmann::json summary = Summary(cluster, overrides);
    samples_.clear();
    const std::vector<std::string> tables = FigureTables(job());
    const std::pair<Role, FigureRole> roles[] = {{Role::kWorker, FigureRole::kWorker},
                                                 {Role::kServer, FigureRole::kServer}};
    for (const auto& [role, figure_role] : roles) {
      const bool is_server = role == Role::kServer;
      const std::vector<std::string> names = is_server ? tables : std::vector<std::string>();
      const FigureLayout layout(figure_role, names.size());
      Readings sum;
      for (const auto& [member, watch] : watches_) {
        if (member.first != role) continue;
        EXPECT_TRUE(watch.Get()->joined);
        EXPECT_EQ(watch.Get()->rank, member.second);
        AddReadings(layout, watch.Get()->readings, &sum);
      }
      for (Sample& sample : SamplesOf(layout, sum, names)) samples_.push_back(std::move(sample));
    }
    return summary;
  }
  // Returns the names of the figures with their labels, those at zero or the others.
  std::set<std::string> Names(bool at_zero) const {
    std::set<std::string> names;
    for (const Sample& sample : samples_) {
      if (IsOfProcess(sample)) continue;
      std::string name(RecordOf(sample.figure).name);
      for (const auto& [label, value] : sample.labels) name += " " + value;
      if ((sample.value == 0 && CountOf(sample) == 0) == at_zero) names.insert(std::move(name));
    }
    return names;
  }
  double Sum(std::string_view figure, const std::string& label = "") const {
    double sum = 0;
    for (const Sample& sample : samples_) {
      if (RecordOf(sample.figure).name != figure) continue;
      if (label.empty() || sample.labels.back().second == label) sum += sample.value;
    }
    return sum;
  }
  const Sample& Histogram(std::string_view figure) const {
    for (const Sample& sample : samples_) {
      if (RecordOf(sample.figure).name == figure) return sample;
    }
    ADD_FAILURE() << "no figure " << figure;
    return samples_.front();
  }
  double Count(std::string_view figure) const {
    return static_cast<double>(CountOf(Histogram(figure)));
  }

  std::vector<Sample> samples_;

 private:
  Mutex mutex_;
  std::map<std::pair<Role, uint32_t>, MemberWatch> watches_;
};

TEST_F(FiguresJobTest, NoneStaysAtZeroInAllJobs) {
  const std::vector<std::pair<ClusterSize, Overrides>> jobs = {
      {{2, 2}, {}},
      {{3, 2}, {"train.mode=async", "train.lookahead=2"}},
      {{2, 1},
       {"model.vocab_cache_size=20", "train.cache_refresh_steps=3",
        "parallel.dense_exchange=allreduce"}},
      {{2, 2}, {"cluster.replicas=1", "model.policy={\"evict_after_steps\": 4}"}},
  };
  std::set<std::string> always_zero;
  for (size_t j = 0; j < jobs.size(); ++j) {
    Run(jobs[j].first, jobs[j].second);
    const std::set<std::string> set = Names(/*at_zero=*/false);
    if (j == 0) always_zero = Names(/*at_zero=*/true);
    std::erase_if(always_zero, [&](const std::string& name) { return set.contains(name); });
  }
  // Whether sums end before they are waited for is a matter of this machine's threads.
  always_zero.erase("hdps_worker_stage_seconds_total reduce_hidden");
  // A memory limit needs more rows than this job has (ServerFigures of memory_limit_test), and its
  // rows are all there (end_to_end.follow waits for others) and in files (TopicReaderTest). Nobody
  // was elected (end_to_end.elect). Which pushes come again or are too old is a matter of this
  // machine's threads (PushAges of server_test, Staleness of sim_test).
  const std::set<std::string> limit = {"hdps_server_disk_waits",
                                       "hdps_server_memory_limit_bytes",
                                       "hdps_server_pushes_repeated_total",
                                       "hdps_server_pushes_too_old_total",
                                       "hdps_server_refused_orders_total",
                                       "hdps_server_row_bytes deep disk",
                                       "hdps_server_row_bytes wide disk",
                                       "hdps_server_rows deep disk",
                                       "hdps_server_rows wide disk",
                                       "hdps_server_rows_fetched_total deep",
                                       "hdps_server_rows_fetched_total wide",
                                       "hdps_worker_dropped_examples_total",
                                       "hdps_worker_dropped_steps_total",
                                       "hdps_worker_messages_missing_total",
                                       "hdps_worker_refused_orders_total",
                                       "hdps_worker_rows_awaited_seconds",
                                       "hdps_worker_topic_lag_messages",
                                       "hdps_worker_topic_lag_seconds"};
  EXPECT_EQ(always_zero, limit);
}

TEST_F(FiguresJobTest, CountsOfASynchronousJobAreItsSteps) {
  constexpr double kWorkers = 2, kServers = 2;
  const nlohmann::json summary = Run({2, 2}, {});
  const double steps = summary["steps"];
  EXPECT_EQ(Sum("hdps_worker_examples_total"), summary["examples"].get<double>());
  EXPECT_EQ(Sum("hdps_worker_bad_rows_total"), 2);  // One in each of two epochs.
  EXPECT_EQ(Count("hdps_worker_step_seconds"), steps * kWorkers);
  EXPECT_NEAR(Sum("hdps_worker_stage_seconds_total", "total"),
              Histogram("hdps_worker_step_seconds").sum, 1e-6);
  EXPECT_EQ(Count("hdps_worker_push_seconds"), steps * kWorkers);
  EXPECT_EQ(Count("hdps_worker_staleness_clocks"), steps * kWorkers);
  EXPECT_EQ(Histogram("hdps_worker_staleness_clocks").sum, 0);
  EXPECT_EQ(Sum("hdps_server_pushes_total"), steps * kWorkers * kServers);
  EXPECT_EQ(Count("hdps_server_push_seconds"), Sum("hdps_server_pushes_total"));
  EXPECT_EQ(Count("hdps_server_pull_seconds"), Sum("hdps_server_pulls_total"));
  EXPECT_GT(Count("hdps_server_gate_wait_seconds"), 0);
  EXPECT_EQ(Sum("hdps_server_rows_admitted_total"), Sum("hdps_server_rows", "memory"));
  EXPECT_GT(Sum("hdps_worker_traffic_bytes_total", "sent"), 64 * steps * kWorkers * kServers);
}

TEST_F(FiguresJobTest, KeptRowsAreThoseOfTheSummary) {
  const nlohmann::json summary =
      Run({2, 1}, {"model.vocab_cache_size=20", "train.cache_refresh_steps=3"});
  const double lookups = Sum("hdps_worker_kept_lookups_total");
  ASSERT_GT(lookups, 0);
  EXPECT_NEAR(Sum("hdps_worker_kept_hits_total") / lookups,
              summary["cache"]["hit_rate"].get<double>(), 1e-4);
}

TEST_F(FiguresJobTest, CopiesOfRowsCountOnce) {
  Run({2, 2}, {});
  const double rows = Sum("hdps_server_rows"), admitted = Sum("hdps_server_rows_admitted_total");
  EXPECT_GT(rows, 50);
  Run({2, 2}, {"cluster.replicas=1"});
  EXPECT_EQ(Sum("hdps_server_rows"), rows);
  EXPECT_EQ(Sum("hdps_server_rows_admitted_total"), admitted);
}

TEST_F(FiguresJobTest, AsynchronousWorkersSeeHowFarTheyAreAhead) {
  const nlohmann::json summary = Run({3, 1}, {"train.mode=ssp", "train.staleness_bound=3"});
  const Sample& seen = Histogram("hdps_worker_staleness_clocks");
  EXPECT_EQ(CountOf(seen), 3 * summary["steps"].get<uint64_t>());
  // Buckets 0, 1, 2, 4: no worker is ever more than 3 clocks ahead.
  for (size_t bucket = 4; bucket < seen.buckets.size(); ++bucket) {
    EXPECT_EQ(seen.buckets[bucket], 0u) << bucket;
  }
}

}  // namespace
}  // namespace hdps
