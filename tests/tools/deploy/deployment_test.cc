// Plants mistakes in a deployment as a whole, and looks for what its manifests must have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "common/job/job_file.h"
#include "tools/deploy/check_deployment.h"
#include "tools/deploy/deploy_kind.h"
#include "tools/deploy/needs.h"

namespace hdps {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kMiB = 1 << 20;

Deployment Good() {
  Deployment d;
  d.name = "clicks";
  d.job_path = "job.json";
  d.job_text = "{}\n";
  d.out = "out/clicks";
  d.servers = 2;
  d.workers = 3;
  d.image = "registry.example/hdps:1.0";
  d.claim = "hdps";
  d.keys_secret = "hdps-keys";
  d.scheduler = d.server = d.worker = d.serving = {256 * kMiB, 512 * kMiB, 2, 0};
  return d;
}

DeployKind KindOf(const std::string& name) {
  for (const DeployKind& kind : DeployKinds()) {
    if (kind.name == name) return kind;
  }
  ADD_FAILURE() << name;
  return {};
}

TEST(DeployKinds, EachIsWholeAndTakesAGoodJob) {
  for (const DeployKind& kind : DeployKinds()) {
    EXPECT_FALSE(kind.help.empty()) << kind.name;
    ASSERT_NE(kind.print, nullptr) << kind.name;
    Deployment d = Good();
    d.port = kind.port;
    const Status status = CheckDeployment(kind, d);
    EXPECT_TRUE(status.ok()) << kind.name << ": " << status.message();
    EXPECT_THAT(kind.print(d), HasSubstr("clicks")) << kind.name;
  }
}

struct Planted {
  const char* flag;
  std::function<void(Deployment&)> plant;
  const char* said;
};

TEST(CheckDeployment, EachMistakeIsNamedWithItsMend) {
  const std::vector<Planted> all = {
      {"--image", [](Deployment& d) { d.image = ""; }, "the image has no name"},
      {"--image", [](Deployment& d) { d.image = "hdps:"; }, "its tag"},
      {"--name", [](Deployment& d) { d.name = "Clicks"; }, "give --name=clicks"},
      {"--name", [](Deployment& d) { d.name = std::string(50, 'a'); }, "give a name of at most 43"},
      {"--namespace", [](Deployment& d) { d.name_space = "a_b"; }, "give --namespace=a-b"},
      {"--claim", [](Deployment& d) { d.claim = "a_b"; }, "Kubernetes takes names"},
      {"--out", [](Deployment& d) { d.out = "/data/out"; }, "without a leading '/'"},
      {"--data_folder", [](Deployment& d) { d.data_folder = "a/../.."; }, "without .."},
      {"--port", [](Deployment& d) { d.port = 80; }, "give 1025 to 65533"},
      {"--port", [](Deployment& d) { d.port = 65534; }, "give 1025 to 65533"},
      {"--uid", [](Deployment& d) { d.uid = 0; }, "give 1 to 2147483647"},
      {"--servers", [](Deployment& d) { d.servers = 0; }, "give 1 to 100000"},
      {"--workers", [](Deployment& d) { d.workers = 100'001; }, "give 1 to 100000"},
      {"--leave_s", [](Deployment& d) { d.leave_s = 0; }, "give 1 to 3600"},
      {"--server_cores", [](Deployment& d) { d.server.cores = 5000; }, "give 1 to 1024"},
      {"--worker_cores", [](Deployment& d) { d.worker.cores = 5000; }, "give 1 to 1024"},
      {"--gpus", [](Deployment& d) { d.worker.gpus = 65; }, "give 0 to 64"},
      {"--keys_secret", [](Deployment& d) { d.keys_secret = ""; }, "or --insecure"},
      {"--keys_secret", [](Deployment& d) { d.keys_secret = "A"; }, "Kubernetes takes names"},
      {"--insecure", [](Deployment& d) { d.insecure = true; },
       "give --keys_secret=hdps-keys alone"},
      {"--http_secret", [](Deployment& d) { d.http_secret = "a/b"; }, "Kubernetes takes names"},
      {"dense_exchange", [](Deployment& d) { d.allreduce = true; }, "--insecure_collective"},
      {"--insecure_collective", [](Deployment& d) { d.insecure_collective = true; },
       "leave it out"},
      {"job.json", [](Deployment& d) { d.job_text = std::string(1 << 20, ' '); }, "a ConfigMap"},
  };
  for (const Planted& planted : all) {
    Deployment d = Good();
    planted.plant(d);
    const Status status = CheckDeployment(KindOf("jobset"), d);
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << planted.flag;
    EXPECT_THAT(status.message(), HasSubstr(planted.flag));
    EXPECT_THAT(status.message(), HasSubstr(planted.said));
  }
}

TEST(CheckDeployment, TheLongestPodNameCounts) {
  Deployment d = Good();
  d.name = std::string(43, 'a');  // And "-scheduler-0-0-x7x2p".
  EXPECT_TRUE(CheckDeployment(KindOf("jobset"), d).ok());
  d.workers = 100'000;  // "-worker-0-99999-x7x2p"
  EXPECT_FALSE(CheckDeployment(KindOf("jobset"), d).ok());
  d.name = std::string(42, 'a');
  EXPECT_TRUE(CheckDeployment(KindOf("jobset"), d).ok());
}

TEST(Pods, KeysAndInsecureExcludeEachOther) {
  Deployment d = Good();
  const std::string closed = KindOf("jobs").print(d);
  EXPECT_THAT(closed, HasSubstr("install -m 0600 -t /keys/job /secrets/job/*"));
  EXPECT_THAT(closed, HasSubstr("secretName: hdps-keys"));
  EXPECT_THAT(closed, HasSubstr("/dev/tcp/127.0.0.1/8117"));
  EXPECT_THAT(closed, Not(HasSubstr("HDPS_INSECURE")));
  d.keys_secret = "";
  d.insecure = true;
  const std::string open = KindOf("jobs").print(d);
  EXPECT_THAT(open, HasSubstr("HDPS_INSECURE"));
  EXPECT_THAT(open, HasSubstr("httpGet"));
  for (const char* absent : {"secret", "HDPS_KEYS", "/dev/tcp", "encrypted-rows"}) {
    EXPECT_THAT(open, Not(HasSubstr(absent)));
  }
}

TEST(Pods, ADollarOfTheJobStaysADollar) {
  Deployment d = Good();
  d.set = "data.train=$(POD_IP)";
  EXPECT_THAT(KindOf("jobset").print(d), HasSubstr("\"data.train=$$(POD_IP)\""));
}

constexpr const char* kJob = R"({
  "name": "small",
  "data": {"format": "criteo", "train": ["train.tsv"]},
  "model": {"type": "wide_deep", "embedding_dim": 16, "hidden": [64, 32]},
  "train": {"batch_size": 1024}
})";

TEST(ForeseeNeeds, GrowWithTheRowsAndFollowTheLimit) {
  const auto needs = [](const std::vector<std::string>& overrides, double rows, uint32_t gpus) {
    const Result<Job> job = ParseJob(kJob, "job.json", overrides);
    EXPECT_TRUE(job.ok()) << job.status().message();
    Deployment d = Good();
    d.worker.gpus = gpus;
    const Status status = ForeseeNeeds(*job, rows, 1.05, &d);
    EXPECT_TRUE(status.ok()) << status.message();
    return d;
  };
  const Deployment few = needs({}, 1e6, 0), many = needs({}, 1e9, 0);
  EXPECT_GT(many.server.request_bytes, 100 * few.server.request_bytes);
  EXPECT_GT(many.serving.limit_bytes, few.serving.limit_bytes);
  for (const MemberNeeds& one : {few.scheduler, few.server, few.worker, few.serving}) {
    EXPECT_GT(one.request_bytes, 64 * kMiB);
    EXPECT_GT(one.limit_bytes, one.request_bytes);
    EXPECT_EQ(one.limit_bytes % kMiB, 0u);
    EXPECT_GE(one.cores, 1u);
  }
  const Deployment limited = needs({"cluster.memory_limit=\"1GiB\""}, 1e9, 0);
  EXPECT_EQ(limited.server.request_bytes, 1024 * kMiB);
  EXPECT_EQ(limited.server.limit_bytes, 1536 * kMiB);
  EXPECT_GT(needs({}, 1e6, 1).worker.request_bytes, few.worker.request_bytes + 1024 * kMiB);
  EXPECT_EQ(WithMemory(few.server, 300 * kMiB).request_bytes, 200 * kMiB);
}

}  // namespace
}  // namespace hdps
