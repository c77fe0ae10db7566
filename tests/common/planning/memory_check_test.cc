// Tests the memory that a job's settings need against the memory of a process.
#include "common/planning/memory_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/job/model_graph.h"
#include "common/platform/file_system.h"

namespace hdps {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr uint64_t kGiB = uint64_t{1} << 30;

Job JobWith(const std::vector<std::string>& overrides) {
  Result<Job> job = ParseJob(R"({"data": {"format": "criteo", "train": ["a.tsv"]},
                                 "model": {"type": "wide_deep", "embedding_dim": 16}})",
                             "job.json", overrides);
  EXPECT_TRUE(job.ok()) << job.status().message();
  return job.ok() ? *std::move(job) : Job();
}

TEST(MemoryCheck, AWorkerHoldsDenseLayersTwiceAndTheRowsItKeeps) {
  const Job job =
      JobWith({"model.vocab_cache_size=1000", "model.deep_optimizer={\"kind\":\"adam\"}",
               "model.wide_optimizer={\"kind\":\"ftrl\"}"});
  const std::vector<MemoryPart> parts = MemoryOfWorker(job, true);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0].bytes, 2 * DenseFloats(job) * sizeof(float));
  EXPECT_EQ(parts[1].bytes + parts[2].bytes, 1000 * (3 * 16 + 1 + 3 * 1) * sizeof(float));
  EXPECT_THAT(parts[1].what, HasSubstr("vocab_cache_size"));
  EXPECT_EQ(MemoryOfWorker(job, false).size(), 1u);  // The rows are on a device.
}

TEST(MemoryCheck, RefusesWhatCannotBeHadTheLargestFirst) {
  const std::vector<MemoryPart> parts = {
      {"small (a.setting)", kGiB}, {"nothing (b.setting)", 0}, {"large (c.setting)", 3 * kGiB}};
  EXPECT_TRUE(CheckMemory("server 1", parts, {4 * kGiB, "ulimit -v"}).ok());
  const Status refused = CheckMemory("server 1", parts, {4 * kGiB - 1, "ulimit -v"});
  EXPECT_EQ(refused.code(), Code::kInvalidArgument);
  EXPECT_EQ(refused.message(),
            "server 1 cannot have the memory that the job asks for: 3.00 GiB for large "
            "(c.setting), 1.00 GiB for small (a.setting); there are 4.00 GiB in all (ulimit -v); "
            "lower these settings, or give it more");
  const std::vector<MemoryPart> huge = {{"huge", ~uint64_t{0}}, {"more", ~uint64_t{0}}};
  EXPECT_FALSE(CheckMemory("server 1", huge, {~uint64_t{0}, "nothing"}).ok());
}

TEST(MemoryCheck, AControlGroupIsHeldToThoseAboveIt) {
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  const auto write = [&](const std::string& path, const std::string& text) {
    const std::string folder = path.substr(0, path.rfind('/'));
    ASSERT_TRUE(files->MakeDirectories(folder).ok());
    ASSERT_TRUE(WriteFileAtomically(*files, path, text).ok());
  };
  const MemoryLimit machine = LimitOfProcess();
  EXPECT_EQ(MostMemory(*files).bytes, machine.bytes);
  write("/proc/self/cgroup", "0::/jobs.slice/hdps.service\n");
  const std::string root = "/sys/fs/cgroup";
  write(root + "/jobs.slice/hdps.service/memory.max", "max\n");
  EXPECT_EQ(MostMemory(*files).bytes, machine.bytes);
  write(root + "/jobs.slice/memory.max", "1000000\n");
  EXPECT_EQ(MostMemory(*files).bytes, std::min(machine.bytes, 1000000 + SwapOfMachine()));
  write(root + "/jobs.slice/memory.swap.max", "0\n");
  EXPECT_EQ(MostMemory(*files).bytes, 1000000u);
  EXPECT_STREQ(MostMemory(*files).by, "its control group");
  write(root + "/memory.max", "800000\n");
  write(root + "/memory.swap.max", "0\n");
  EXPECT_EQ(MostMemory(*files).bytes, 800000u);
}

}  // namespace
}  // namespace hdps
