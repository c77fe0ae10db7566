// Plants faults in the facts of a machine: each is reported with its subject, value and remedy, and
// nothing else is.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/job/job_spec.h"
#include "common/job/spec/checkpoint_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/precision.h"
#include "tools/doctor/diagnosis.h"

namespace hdps {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

struct Situation {
  Job job;
  LocalMembers here{2, 2, true};
  MachineFacts facts;
  PlanAnswer answer;

  Situation() {
    job.cluster.shards = 8;
    job.checkpoint.keep = 2;
    facts.memory = {40 * kGiB, 64 * kGiB};
    facts.shared_memory = {4 * kGiB, 4 * kGiB};
    facts.out = facts.spill = {100 * kGiB, 200 * kGiB};
    facts.cores = facts.cores_there = 8;
    facts.open_files_max = 1024;
    facts.gpu_trouble = "no CUDA-capable device is detected";
    answer.server_row_bytes = 10.0 * kGiB;
    answer.worker_bytes = 1.0 * kGiB;
    answer.checkpoint_bytes = 20.0 * kGiB;
  }
  std::vector<Diagnosis> Found() const { return Diagnose(job, here, facts, &answer); }
};

TEST(Doctor, AFitMachineHasNoFault) {
  for (const Diagnosis& one : Situation().Found()) {
    EXPECT_EQ(one.finding, Finding::kGood) << one.subject << ": " << one.text;
  }
  Situation nothing_foreseen;
  for (const Diagnosis& one :
       Diagnose(nothing_foreseen.job, nothing_foreseen.here, nothing_foreseen.facts, nullptr)) {
    EXPECT_EQ(one.finding, Finding::kGood) << one.subject << ": " << one.text;
  }
}

struct Planted {
  const char* subject;
  Finding finding;
  std::function<void(Situation&)> plant;
  std::vector<const char*> said;
};
constexpr Finding kFault = Finding::kFault, kWarning = Finding::kWarning;

std::vector<Planted> Faults() {
  return {{"out",
           kFault,
           [](Situation& s) { s.facts.out_trouble = "out: Permission denied"; },
           {"Permission denied"}},
          {"out",
           kFault,
           [](Situation& s) { s.facts.out.free = 30 * kGiB; },
           {"30.0 GiB free", "3 checkpoints take 60.0 GiB", "checkpoint.keep"}},
          {"out",
           kFault,
           [](Situation& s) { s.facts.file_bytes_max = kGiB; },
           {"1.00 GiB (ulimit -f)", "2.50 GiB", "unlimited"}},
          {"rows on disk",
           kFault,
           [](Situation& s) {
             s.job.cluster.memory_limit = kGiB;
             s.facts.spill_trouble = "spill: Read-only file system";
           },
           {"Read-only"}},
          {"rows on disk",
           kFault,
           [](Situation& s) {
             s.job.cluster.memory_limit = kGiB;
             s.job.cluster.spill_path = "/fast";
             s.facts.spill.free = 10 * kGiB;
           },
           {"18.0 GiB of rows", "/fast has 10.0 GiB", "cluster.spill_path"}},
          {"listen",
           kFault,
           [](Situation& s) { s.facts.listen_trouble = "port 5 is in use"; },
           {"in use"}},
          {"scheduler",
           kFault,
           [](Situation& s) { s.facts.scheduler_trouble = "nobody listens at tcp://a:5"; },
           {"nobody listens"}},
          {"memory",
           kFault,
           [](Situation& s) { s.facts.memory.free = 20 * kGiB; },
           {"20.0 GiB of 64.0 GiB", "22.0 GiB", "cluster.memory_limit"}},
          {"memory",
           kFault,
           [](Situation& s) { s.job.cluster.memory_limit = 40 * kGiB; },
           {"80.0 GiB", "smaller"}},
          {"open files",
           kFault,
           [](Situation& s) { s.facts.open_files_max = 64; },
           {"64", "84", "ulimit -n"}},
          {"GPU",
           kFault,
           [](Situation& s) { s.job.model.device = "cuda"; },
           {"no CUDA-capable device", "model.device=cpu"}}};
}

std::vector<Planted> Warnings() {
  return {{"huge pages", kWarning, [](Situation& s) { s.facts.huge_pages = "never"; }, {"madvise"}},
          {"shared memory",
           kWarning,
           [](Situation& s) {
             s.facts.shared_memory = {0, 0};
           },
           {"--shm-size"}},
          {"cores", kWarning, [](Situation& s) { s.facts.cores = 2; }, {"2 of 8", "--threads=2"}},
          {"cores", kWarning, [](Situation& s) { s.here.workers = 20; }, {"8 for 22 members"}},
          {"vectors", kWarning, [](Situation& s) { s.facts.wide_vectors = false; }, {"AVX2"}},
          {"precision",
           kWarning,
           [](Situation& s) {
             s.job.model.precision = Precision::kBf16;
             s.facts.products_in_bf16 = false;
           },
           {"bf16", "fp32"}},
          {"clock", kWarning, [](Situation& s) { s.facts.year = 1970; }, {"1970"}},
          {"clock",
           kWarning,
           [](Situation& s) {
             s.facts.clock_is_set = false;
             s.here.all = false;
           },
           {"time server"}}};
}

TEST(Doctor, NamesEachPlantedFault) {
  std::vector<Planted> all = Faults();
  for (Planted& warning : Warnings()) all.push_back(std::move(warning));
  for (const Planted& planted : all) {
    Situation situation;
    planted.plant(situation);
    size_t named = 0;
    for (const Diagnosis& one : situation.Found()) {
      if (one.finding == Finding::kGood) continue;
      EXPECT_EQ(one.subject, planted.subject) << one.text;
      EXPECT_EQ(one.finding, planted.finding) << one.text;
      for (const char* said : planted.said) {
        EXPECT_NE(one.text.find(said), std::string::npos) << said << " in: " << one.text;
      }
      ++named;
    }
    EXPECT_EQ(named, 1u) << planted.subject << ", " << planted.said[0];
  }
  std::printf("%zu planted faults named\n", all.size());
}

}  // namespace
}  // namespace hdps
