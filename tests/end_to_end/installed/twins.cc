// Trains a job with copies of the library's adagrad and sgd, under names of this program's own.
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "common/job/job.h"
#include "common/job/job_registry.h"
#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"
#include "embedding/own_optimizer.h"
#include "tools/local_cluster.h"

namespace {

struct TwinAdagrad : hdps::OptimizerRule {
  static constexpr char kName[] = "twin_adagrad";
  static constexpr char kFormula[] = "h += g^2; w -= lr g / (sqrt(h) + epsilon)";
  static constexpr char kPaper[] = "as adagrad";
  static constexpr hdps::OptimizerSetting kSettings[] = {hdps::optimizers::kLearningRate,
                                                         hdps::optimizers::kEpsilon,
                                                         hdps::optimizers::kInitialAccumulator};
  static constexpr size_t kStateArrays = 1;
  static constexpr float InitialState(const hdps::OptimizerSettings& s, size_t) {
    return s.initial_accumulator;
  }
  HDPS_RULE static void Update(const hdps::OptimizerSettings& s, Factor, float g, float& w,
                               float& h) {
    h += g * g;
    w -= s.learning_rate * g / (__builtin_sqrtf(h) + s.epsilon);
  }
};

struct TwinSgd : hdps::OptimizerRule {
  static constexpr char kName[] = "twin_sgd";
  static constexpr char kFormula[] = "w -= lr g";
  static constexpr char kPaper[] = "as sgd";
  static constexpr hdps::OptimizerSetting kSettings[] = {hdps::optimizers::kLearningRate};
  HDPS_RULE static void Update(const hdps::OptimizerSettings& s, Factor, float g, float& w) {
    w -= s.learning_rate * g;
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: twins JOB OUT [KEY=VALUE...]\n";
    return 2;
  }
  hdps::JobRegistry registry = hdps::BuiltInRegistry();
  if (!registry.optimizers.Add(hdps::OwnOptimizer<TwinAdagrad>()).ok()) return 2;
  if (!registry.optimizers.Add(hdps::OwnOptimizer<TwinSgd>()).ok()) return 2;
  const std::unique_ptr<hdps::FileSystem> files = hdps::NewPosixFileSystem();
  const std::unique_ptr<hdps::MonotonicClock> clock = hdps::NewSystemClock();
  hdps::Result<hdps::Job> job =
      hdps::LoadJob(*files, argv[1], std::vector<std::string>(argv + 3, argv + argc),
                    hdps::DataFiles::kMustExist, registry);
  if (!job.ok()) {
    std::cerr << job.status().message() << "\n";
    return 2;
  }
  hdps::LocalClusterOptions options;
  options.job = std::make_shared<const hdps::Job>(*std::move(job));
  options.out = argv[2];
  options.num_workers = 2;
  options.num_servers = 2;
  const auto done = hdps::RunLocalCluster(options, *files, *clock);
  if (!done.ok() || done->status != 0) {
    std::cerr << (done.ok() ? done->reason : done.status().message()) << "\n";
    return done.ok() ? done->status : 3;
  }
  return 0;
}
