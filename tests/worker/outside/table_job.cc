// Makes the job, and runs it on threads.
#include "tests/worker/outside/table_job.h"

#include <glog/logging.h>

#include <utility>

#include "common/job/job_file.h"
#include "common/platform/executor.h"
#include "scheduler/picture/job_picture.h"

namespace hdps {
namespace {

constexpr char kJob[] = R"({
  "name": "tables",
  "model": {"type": "tables",
            "tables": [{"name": "words", "dim": 4,
                        "optimizer": {"kind": "sgd", "learning_rate": 0.5}},
                       {"name": "users", "dim": 2, "optimizer": {"kind": "adagrad"}}]},
  "cluster": {"shards": 8, "heartbeat_ms": 50}
})";

}  // namespace

PulledRows PullOne(TableWorker& worker, TableId table, const std::vector<Key>& keys, PullFor use) {
  const AskedKeys asked{table, keys};
  Result<std::vector<PulledRows>> pulled = worker.Pull({&asked, 1}, use);
  EXPECT_TRUE(pulled.ok()) << pulled.status().message();
  return pulled.ok() ? std::move(pulled->front()) : PulledRows();
}

void MakeEmptySteps(TableWorker& worker) {
  while (worker.Advance(0).ok()) {
  }
  EXPECT_EQ(worker.standing(), Standing::kEnded) << worker.reason();
}

TableJobTest::TableJobTest() : files_(NewMemoryFileSystem()), clock_(NewSystemClock()) {
  FLAGS_minloglevel = google::GLOG_ERROR;
}

Result<Job> TableJobTest::Parse(const Overrides& overrides) const {
  return ParseJob(kJob, "job.json", overrides);
}

Result<std::unique_ptr<LocalTables>> TableJobTest::Start(const Size& size,
                                                         const Overrides& overrides,
                                                         std::vector<TableWorkerOptions> options) {
  HDPS_ASSIGN_OR_RETURN(Job job, Parse(overrides));
  LocalClusterOptions local;
  local.job = std::make_shared<const Job>(std::move(job));
  local.out = out_;
  local.num_workers = size.workers;
  local.num_servers = size.servers;
  local.threads = 1;
  local.resume = resume_;
  local.pictures = pictures_;
  local.voice.notice = [](const std::string&) {};
  return LocalTables::Start(std::move(local), std::move(options), *files_, *clock_);
}

ProcessEnd TableJobTest::Run(const Size& size, const Overrides& overrides, const Body& body,
                             std::vector<TableWorkerOptions> options, Resume resume) {
  if (resume == Resume::kNever) out_ = "out" + std::to_string(++runs_);
  resume_ = resume;
  Result<std::unique_ptr<LocalTables>> local = Start(size, overrides, std::move(options));
  if (!local.ok()) return {ExitStatusOf(local.status().code()), local.status().message()};
  std::vector<std::unique_ptr<Thread>> threads;
  for (uint32_t w = 0; w < size.workers; ++w) {
    threads.push_back(StartThread("program", [&, w] {
      TableWorker& worker = (*local)->worker(w).worker();
      body(worker);
      if (worker.standing() == Standing::kSteps) (void)worker.Finish();
    }));
  }
  threads.clear();
  return (*local)->Close();
}

nlohmann::json TableJobTest::Summary(const Size& size, const Overrides& overrides, const Body& body,
                                     std::vector<TableWorkerOptions> options, Resume resume) {
  const ProcessEnd end = Run(size, overrides, body, std::move(options), resume);
  EXPECT_EQ(end.status, 0) << end.reason;
  const Result<std::string> text = ReadWholeFile(*files_, JoinPath(out_, "summary.json"), 1 << 20);
  EXPECT_TRUE(text.ok()) << text.status().message();
  return text.ok() ? nlohmann::json::parse(*text) : nlohmann::json();
}

}  // namespace hdps
