// Makes the job and its data, and runs it.
#include "tests/worker/role/small_job.h"

#include <glog/logging.h>

#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "tools/local_cluster.h"

namespace hdps {
namespace {

constexpr char kJob[] = R"({
  "name": "small",
  "data": {"format": "csv", "train": ["train.csv"], "eval": ["eval.csv"],
           "columns": [{"name": "y", "type": "label"}, {"name": "x", "type": "numeric"},
                       {"name": "a"}, {"name": "b", "type": "multi"}]},
  "model": {"type": "wide_deep", "embedding_dim": 4, "hidden": [8, 4]},
  "train": {"batch_size": 50, "epochs": 2},
  "parallel": {"gradients_mean": true},
  "cluster": {"shards": 8}
})";

}  // namespace

std::string SmallRows(uint64_t count, uint64_t seed, const DrawIds& draw) {
  Random random(seed);
  std::string text;
  for (uint64_t i = 0; i < count; ++i) {
    const auto [a, b] = draw(random, i);
    const bool label = random.Unit() < (a % 3 == 0 ? 0.8 : 0.2);
    text += std::to_string(label ? 1 : 0) + "," + std::to_string(random.Unit()) + ",a" +
            std::to_string(a) + ",b" + std::to_string(b) + (b % 2 == 0 ? "|c" : "") + "\n";
  }
  return text;
}

SmallJobTest::SmallJobTest(Overrides always, const std::string& train, const std::string& eval)
    : files_(NewMemoryFileSystem()), always_(std::move(always)), clock_(NewSystemClock()) {
  FLAGS_minloglevel = google::GLOG_ERROR;
  EXPECT_TRUE(WriteFileAtomically(*files_, "job.json", kJob).ok());
  EXPECT_TRUE(WriteFileAtomically(*files_, "train.csv", train).ok());
  EXPECT_TRUE(WriteFileAtomically(*files_, "eval.csv", eval).ok());
}

Result<ProcessEnd> SmallJobTest::Run(const std::string& out, const ClusterSize& cluster,
                                     const Overrides& overrides) {
  out_ = out;
  HDPS_ASSIGN_OR_RETURN(Job job, LoadJob(*files_, "job.json", always_ + overrides));
  LocalClusterOptions options;
  options.job = job_ = std::make_shared<const Job>(std::move(job));
  options.watch = watch_;
  options.out = out;
  options.num_workers = cluster.workers;
  options.num_servers = cluster.servers;
  options.threads = 2;
  options.voice.notice = [](const std::string&) {};
  options.trace = trace_;
  options.trace_steps = kTracedSteps;
  return RunLocalCluster(options, *files_, *clock_);
}

ProcessEnd SmallJobTest::RunJobInto(const std::string& out, const ClusterSize& cluster,
                                    const Overrides& overrides) {
  const Result<ProcessEnd> end = Run(out, cluster, overrides);
  EXPECT_TRUE(end.ok()) << end.status().message();
  return end.ok() ? *end : ProcessEnd{2, end.status().message()};
}

std::string SmallJobTest::Refusal(const ClusterSize& cluster, const Overrides& overrides) {
  const Result<ProcessEnd> end = Run("out" + std::to_string(++runs_), cluster, overrides);
  if (!end.ok()) return end.status().message();
  return end->status == kExitMistaken ? end->reason : "";
}

ProcessEnd SmallJobTest::RunJob(const ClusterSize& cluster, const Overrides& overrides) {
  return RunJobInto("out" + std::to_string(++runs_), cluster, overrides);
}

nlohmann::json SmallJobTest::SummaryInto(const std::string& out, const ClusterSize& cluster,
                                         const Overrides& overrides) {
  const ProcessEnd end = RunJobInto(out, cluster, overrides);
  EXPECT_EQ(end.status, 0) << end.reason;
  const Result<std::string> text = ReadWholeFile(*files_, JoinPath(out, "summary.json"), 1 << 20);
  EXPECT_TRUE(text.ok()) << text.status().message();
  return text.ok() ? nlohmann::json::parse(*text) : nlohmann::json();
}

nlohmann::json SmallJobTest::Summary(const ClusterSize& cluster, const Overrides& overrides) {
  return SummaryInto("out" + std::to_string(++runs_), cluster, overrides);
}

}  // namespace hdps
