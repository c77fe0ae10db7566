// Fuzzes job files with --set overrides, strategy files and measured rates: printing and reading
// again gives the same.

#include <glog/logging.h>

#include <memory>
#include <string>
#include <vector>

#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/job/strategy/strategy_file.h"
#include "common/process/faults.h"
#include "common/protocol/watch_state.h"
#include "tests/fuzz/target.h"

namespace hdps::fuzz {
namespace {

// The overrides follow the file, each after a zero byte.
Verdict RunJob(std::string_view bytes) {
  std::vector<std::string> overrides;
  const size_t json_bytes = std::min(bytes.find('\0'), bytes.size());
  if (json_bytes < bytes.size()) {
    const std::string all(bytes.substr(json_bytes + 1));
    for (const std::string& part : SplitOverrides(all)) overrides.push_back(part);
  }
  const Result<Job> job = ParseJob(std::string(bytes.substr(0, json_bytes)), "job.json", overrides);
  if (!job.ok()) return Refused(job.status(), Code::kInvalidArgument);
  const std::string printed = PrintJob(*job);
  const Result<Job> again = ParseJob(printed, "printed.json", {});
  CHECK(again.ok()) << again.status().message() << "\n" << printed;
  CHECK_EQ(PrintJob(*again), printed);
  CHECK_EQ(JobDigest(*again), JobDigest(*job));
  CHECK_EQ(TablesDigest(*again), TablesDigest(*job));
  return Verdict::kAccepted;
}

std::vector<std::string> JobSeeds() {
  const std::string data =
      R"({"name": "small", "data": {"train": ["a.csv"], "columns": [
      {"name": "y", "type": "label", "positive": ["1", "yes"]},
      {"name": "x", "type": "numeric", "transform": "standardize", "mean": 1, "scale": 2},
      {"name": "c"}, {"name": "d", "type": "multi"}, {"name": "e"}],
      "features": [{"name": "range", "kind": "bucketized", "from": ["x"], "boundaries": [1, 2.5]},
      {"name": "cross", "from": ["c", "range"], "hash_buckets": 1000}]}, "model": )";
  std::vector<std::string> seeds;
  for (const char* const type : {"wide_deep", "deepfm", "dcn_v2", "dlrm", "mlp", "logistic"}) {
    seeds.push_back(data + R"({"type": ")" + type + "\"}}");
  }
  seeds.push_back(
      R"({"model": {"type": "tables", "tables": [{"name": "t", "policy": {"max_rows": 9}}]},
      "train": {"eval_every_steps": 5, "early_stop": {"patience": 2}, "epochs": 3}})");
  seeds.push_back(
      data +
      R"({"type": "graph", "tables": [{"name": "t", "dim": 4, "optimizer": "adam"}], "layers": [
      {"name": "e", "kind": "embedding", "table": "t"},
      {"name": "out", "inputs": ["e"], "units": 1}]},
      "train": {"mode": "ssp", "staleness_bound": 2}, "checkpoint": {"every_steps": 10},
      "cluster": {"shards": 16, "replicas": 1}})");
  for (size_t i = seeds.size() - 3; i-- > 0;) {  // With every setting written out.
    const Result<Job> job = ParseJob(seeds[i], "seed.json", {});
    CHECK(job.ok()) << job.status().message();
    seeds.push_back(PrintJob(*job));
  }
  seeds.push_back(seeds[0] + '\0' +
                  R"(train.mode=async,data.columns.5={"name":"f"},train.epochs=3)");
  return seeds;
}

Verdict RunStrategy(std::string_view bytes) {
  const Result<KeptStrategy> kept = ParseStrategyFile(std::string(bytes), "strategy.json");
  if (!kept.ok()) return Refused(kept.status(), Code::kInvalidArgument);
  const std::string printed = PrintStrategyFile(*kept);
  const Result<KeptStrategy> again = ParseStrategyFile(printed, "strategy.json");
  CHECK(again.ok()) << again.status().message();
  CHECK(*again == *kept);
  return Verdict::kAccepted;
}

std::vector<std::string> StrategySeeds() {
  return {R"({"workers": 4, "graph": "9c1185a5c5e9fc54", "layers": [
      {"name": "deep1", "kind": "dense", "examples": 1, "inputs": 1, "columns": 4},
      {"name": "deep2", "kind": "dense", "examples": 2, "inputs": 2, "columns": 1}]})"};
}

Verdict RunRates(std::string_view bytes) {
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  PutFile(*files, "rates.json", bytes);
  const Result<StepRates> rates = ReadStepRates(*files, "rates.json");
  if (!rates.ok()) return Refused(rates.status(), Code::kInvalidArgument);
  CHECK(rates->flops_per_second > 0 && rates->link_bytes_per_second > 0);
  return Verdict::kAccepted;
}

std::vector<std::string> RatesSeeds() {
  return {R"({"results": [{"case": "products_64", "figure": "rate", "value": 320},
      {"case": "wire", "figure": "byte", "value": 0.5},
      {"case": "socket_pull", "figure": "base", "value": 120}]})"};
}

Verdict RunFaults(std::string_view bytes) {
  const Result<Faults> faults = ParseFaults(std::string(bytes));
  if (!faults.ok()) return Refused(faults.status(), Code::kInvalidArgument);
  return Verdict::kAccepted;
}

std::vector<std::string> FaultsSeeds() {
  return {"drop=5%,repeat=5%,reorder=10%,late=10%:0..200ms,seed=7",
          "cut=scheduler:in@10s+30s,cut=all@while=/tmp/cut,late=0..20ms",
          "full=checkpoint/*:100,failing=*:3,slow=*.state:50ms@1s,torn=scheduler.state*:2",
          "point=scheduler.state.written:crash@2..3,point=snapshot.read.begun:error@1..",
          "count",
          "point=scheduler.state.written:sleep=50ms"};
}

Verdict RunWatched(std::string_view bytes) {
  const Result<Watched> watched = ParseWatched(std::string(bytes));
  if (!watched.ok()) return Refused(watched.status(), Code::kCorruption);
  const std::string printed = PrintWatched(*watched);
  const Result<Watched> again = ParseWatched(printed);
  CHECK(again.ok()) << again.status().message();
  CHECK_EQ(PrintWatched(*again), printed);
  return Verdict::kAccepted;
}

std::vector<std::string> WatchedSeeds() {
  Watched watched;
  watched.best = {"auc", 100, 0.75, 1, 110};
  watched.rate = 0.5;
  return {PrintWatched({}), PrintWatched(watched)};
}

const AddTarget job({"job", RunJob, JobSeeds});
const AddTarget strategy({"strategy", RunStrategy, StrategySeeds});
const AddTarget rates({"rates", RunRates, RatesSeeds});
const AddTarget faults({"faults", RunFaults, FaultsSeeds});
const AddTarget watched({"watched", RunWatched, WatchedSeeds});

}  // namespace
}  // namespace hdps::fuzz
