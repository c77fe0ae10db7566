// Runs the simulations; --sim_seed=N runs only that seed, --sim_seeds_factor=N runs N times as
// many.
#include <gflags/gflags.h>
#include <glog/logging.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>

#include "tests/share.h"
#include "tests/sim/seeds.h"

DEFINE_int64(sim_seed, -1, "Run this seed alone; below 0: all of them");
DEFINE_uint64(sim_seeds_factor, 1,
              "Run so many times all seeds, for soaking; 1: a third, or with HDPS_TESTS=all all");

namespace hdps::sim {
namespace {

std::vector<uint64_t> Range(uint64_t begin, uint64_t end) {
  std::vector<uint64_t> seeds(end - begin);
  std::iota(seeds.begin(), seeds.end(), begin);
  return seeds;
}

}  // namespace

std::vector<uint64_t> Seeds(uint64_t count) {
  if (FLAGS_sim_seed >= 0) return {static_cast<uint64_t>(FLAGS_sim_seed)};
  if (AllTestsAreAsked() || FLAGS_sim_seeds_factor > 1)
    return Range(0, count * FLAGS_sim_seeds_factor);
  // Neighbors, because tests draw modes by the remainder of a seed.
  const uint64_t third = ChosenThird();
  return Range(count * third / kThirds, count * (third + 1) / kThirds);
}

std::vector<uint64_t> SeedsOfPart(uint64_t count, uint64_t part, uint64_t parts) {
  const char* const asked = std::getenv("HDPS_SIM_SEEDS");
  std::vector<uint64_t> seeds = asked == nullptr || FLAGS_sim_seed >= 0
                                    ? Seeds(count)
                                    : Range(0, std::strtoull(asked, nullptr, 10));
  std::erase_if(seeds, [&](uint64_t seed) { return seed % parts != part; });
  return seeds;
}

bool NoticedOften(uint64_t noticed, uint64_t runs) {
  return runs == 1 || (AllTestsAreAsked() ? 2 * noticed >= runs : 5 * noticed >= 2 * runs);
}

std::string RepeatCommand(uint64_t seed) {
  const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
  return std::string("repeat with: build/bin/sim_test --gtest_filter=") + test->test_suite_name() +
         "." + test->name() + " --sim_seed=" + std::to_string(seed);
}

}  // namespace hdps::sim

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  google::InitGoogleLogging(argv[0]);
  FLAGS_logtostderr = true;
  // A thousand clusters log too much.
  if (FLAGS_sim_seed < 0) FLAGS_minloglevel = google::GLOG_ERROR;
  return RUN_ALL_TESTS();
}
