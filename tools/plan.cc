// Implements hdps plan: predicts how fast a job would train on a cluster, and what would bound it.
#include <gflags/gflags.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "common/job/job_facts.h"
#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/precision.h"
#include "common/job/spec/train_spec.h"
#include "common/job/strategy/strategy_file.h"
#include "common/planning/placement.h"
#include "common/planning/strategy_of_job.h"
#include "common/planning/table_choices.h"
#include "common/platform/file_system.h"
#include "common/platform/output_file.h"
#include "common/process/command_line.h"
#include "common/process/terminal.h"
#include "scheduler/members/validate_cluster.h"
#include "server/server_memory_limit.h"
#include "tools/commands.h"
#include "tools/common_flags.h"
#include "tools/inputs/file_names.h"
#include "tools/plan/cost_model.h"
#include "tools/plan/placement_text.h"
#include "tools/plan/plan_question.h"
#include "tools/plan/plan_report.h"
#include "tools/plan/strategy_view.h"
#include "tools/warnings.h"
#include "worker/data/cache/row_caches.h"

DEFINE_string(network, "25Gbit",
              "Network of each machine, 25Gbit (bits a second) or 3GB (bytes a second); local: all "
              "on one machine");
DEFINE_double(network_round_trip_us, 50, "Microseconds of a round trip between two machines");
DEFINE_uint32(machines, 0,
              "Number of machines over which servers and workers are spread evenly and share cores "
              "and links; 0: each has its own");
DEFINE_uint32(row_bytes, 250, "Bytes of one row of the data, as it is read");
DEFINE_double(
    unique, 0,
    "Share of distinct keys among a worker's keys of a step; 0: computed from --rows and --zipf");
DEFINE_string(constants, "",
              "File that hdps-bench constants --json=FILE wrote on such a machine; empty: the "
              "figures of the machine that hdps was developed on");
DEFINE_bool(strategy, false,
            "Show how the layers lie over the workers and what that costs, in place of the plan");
DEFINE_bool(
    placement, false,
    "Show where auto_parallel would keep tables and dense layers, how tables are cut, and how "
    "many rows the workers keep, in place of the plan");
DEFINE_string(strategy_file, "", "File of a strategy that --strategy shows; empty: the job's own");
DEFINE_string(dot, "",
              "File to which --strategy writes the model as a graph for graphviz: dot -Tsvg FILE");
DECLARE_string(job);
DECLARE_string(rows);
DECLARE_bool(json);
DECLARE_uint32(servers);
DECLARE_uint32(workers);
DECLARE_double(zipf);

namespace hdps {
namespace {

// Reads bytes per second; 0 for one machine.
Result<double> ReadNetwork() {
  if (FLAGS_network == "local") return 0.0;
  const std::optional<double> speed = ParseWithUnit(
      FLAGS_network, {{"Mbit", 1e6 / 8}, {"Gbit", 1e9 / 8}, {"MB", 1e6}, {"GB", 1e9}});
  if (speed && *speed > 0) return *speed;
  return Status(Code::kInvalidArgument,
                "--network=" + FLAGS_network +
                    ": expected a speed as 25Gbit or 3GB (a second), or local for one machine");
}

Status CheckFlags(const CommonFlags& flags) {
  if (flags.job.empty()) {
    return {Code::kInvalidArgument, "--job is missing; give the job file, --job=FILE"};
  }
  const auto outside = [](const char* flag, double value, const char* expected) {
    return Status(Code::kInvalidArgument, std::string("--") + flag + "=" + std::to_string(value) +
                                              " is out of range; give " + expected);
  };
  constexpr uint32_t kMembersMax = 100'000;
  if (FLAGS_servers < 1 || FLAGS_servers > kMembersMax) {
    return outside("servers", FLAGS_servers, "1 to 100000");
  }
  if (FLAGS_workers < 1 || FLAGS_workers > kMembersMax) {
    return outside("workers", FLAGS_workers, "1 to 100000");
  }
  if (FLAGS_machines > 0 &&
      (FLAGS_servers % FLAGS_machines != 0 || FLAGS_workers % FLAGS_machines != 0)) {
    return {Code::kInvalidArgument,
            "--machines=" + std::to_string(FLAGS_machines) + " cannot share " +
                std::to_string(FLAGS_servers) + " servers and " + std::to_string(FLAGS_workers) +
                " workers evenly; give a divisor of both, or 0 for a machine each"};
  }
  if (FLAGS_machines > 0 && FLAGS_network == "local") {
    return {
        Code::kInvalidArgument,
        "--machines=" + std::to_string(FLAGS_machines) +
            " with --network=local: all is on one machine; give the network's speed, as 25Gbit"};
  }
  if (!(FLAGS_zipf >= 0 && FLAGS_zipf <= 10)) return outside("zipf", FLAGS_zipf, "0 to 10");
  if (!(FLAGS_unique >= 0 && FLAGS_unique <= 1)) return outside("unique", FLAGS_unique, "0 to 1");
  if (!(FLAGS_network_round_trip_us >= 0 && FLAGS_network_round_trip_us <= 1e7)) {
    return outside("network_round_trip_us", FLAGS_network_round_trip_us, "0 to 10000000");
  }
  if (FLAGS_row_bytes < 1) return outside("row_bytes", FLAGS_row_bytes, "1 or more");
  return Status();
}

// Returns the number of distinct keys: that of --rows, or what the job counts.
Result<double> ReadRows(const Job& job) {
  const double counted = CountedRows(job);
  return ReadRowsFlag(counted > 0 ? counted : kRowsUsual);
}

Result<PlanQuestion> ReadQuestion(const Job& job) {
  HDPS_ASSIGN_OR_RETURN(const double rows, ReadRows(job));
  HDPS_ASSIGN_OR_RETURN(PlanQuestion question, QuestionOf(job, FLAGS_servers, FLAGS_workers, rows));
  HDPS_ASSIGN_OR_RETURN(question.network_bytes_per_second, ReadNetwork());
  question.one_machine = question.network_bytes_per_second == 0;
  question.network_round_trip_us = FLAGS_network_round_trip_us;
  question.machines = FLAGS_machines;
  question.zipf = FLAGS_zipf;
  question.unique_share = FLAGS_unique;
  question.text_row_bytes = FLAGS_row_bytes;
  if (KeepsRowsInMemory(job, question.one_machine || question.workers == 1)) {
    question.kept_example_bytes = static_cast<double>(KeptRowBytes(job));
    question.kept_examples_share = job.data.cache_share;
  }
  return question;
}

// Sets the row memory of one server under cluster.memory_limit, as the server would predict it.
// Returns why the limit cannot be kept; empty: it can.
std::string LimitRows(const Job& job, PlanQuestion* question) {
  constexpr uint64_t kProcessBytes = 24 << 20;  // Approximate memory of a server without rows.
  if (job.cluster.memory_limit == 0) return "";
  MemoryLimitOptions options;
  options.own_shards = (job.cluster.shards + question->servers - 1) / question->servers;
  options.num_workers = question->workers;
  options.expected_rows = static_cast<uint64_t>(question->rows);
  const MemoryPlan memory = PlanMemory(job, options, kProcessBytes);
  question->row_memory_bytes = static_cast<double>(memory.rows + memory.spilled);
  return WhyLimitIsTooSmall(job, options, kProcessBytes);
}

// Shows the strategy that --strategy names: the job's own, or that of a file. Starts nothing.
Status ShowStrategy(FileSystem& files, Job job) {
  std::vector<InputFile> inputs = InputsOf(FLAGS_job, job);
  inputs.push_back({"the file of --strategy_file", FLAGS_strategy_file});
  inputs.push_back({"the file of --constants", FLAGS_constants});
  HDPS_RETURN_IF_ERROR(RefuseInput(files, "--dot=" + FLAGS_dot, FLAGS_dot, inputs));
  HDPS_RETURN_IF_ERROR(RefuseSavedStrategy(files, FLAGS_job, job));
  if (!FLAGS_strategy_file.empty()) {
    HDPS_ASSIGN_OR_RETURN(job.parallel.kept_strategy, ReadStrategyFile(files, FLAGS_strategy_file));
    const ParallelMode mode = job.parallel.parallel_mode;
    if (mode == ParallelMode::kData || mode == ParallelMode::kStandAlone) {
      job.parallel.parallel_mode = ParallelMode::kHybrid;
    }
  }
  HDPS_ASSIGN_OR_RETURN(const Strategy strategy, StrategyOf(job, FLAGS_workers));
  HDPS_RETURN_IF_ERROR(SaveStrategy(files, job, strategy));
  const JobFacts facts = FactsOf(job);
  const StrategyView view = {facts, strategy, job.parallel.rates, StrategyLine(job, strategy)};
  PrintOutText(StrategyText(view));
  if (FLAGS_dot.empty()) return {};
  const std::string folder = std::filesystem::path(FLAGS_dot).parent_path().string();
  Status written = folder.empty() ? Status() : files.MakeDirectories(folder);
  if (written.ok()) written = WriteNamedFile(files, FLAGS_dot, StrategyDot(view));
  if (written.ok()) return {};
  return {Code::kInvalidArgument, "--dot=" + FLAGS_dot + ": " + written.message()};
}

// Returns the laws of the job's features. Where --rows is given, or the job has no counts, the keys
// are dealt out evenly to the features.
Result<std::map<std::string, ValueLaw>> ReadLaws(const Job& job, const JobShape& shape) {
  if (FLAGS_rows.empty() && !job.data.distinct.empty()) return LawsOf(job);
  HDPS_ASSIGN_OR_RETURN(const double rows, ReadRows(job));
  std::map<std::string, ValueLaw> laws;
  for (const std::string& feature : FeaturesOf(job.data).sparse) {
    laws[feature] = {std::max(rows / std::max(shape.keys, 1u), 1.0), FLAGS_zipf};
  }
  return laws;
}

// Shows what auto_parallel would choose in a cluster of these servers and this network.
Status ShowPlacement(FileSystem& files, CommonFlags flags) {
  flags.overrides.emplace_back("parallel.parallel_mode=auto_parallel");
  flags.overrides.push_back("parallel.device_num=" + std::to_string(FLAGS_workers));
  if (!FLAGS_constants.empty()) flags.overrides.push_back("parallel.constants=" + FLAGS_constants);
  HDPS_ASSIGN_OR_RETURN(const Job job,
                        LoadJob(files, flags.job, flags.overrides, DataFiles::kNotNeeded));
  HDPS_RETURN_IF_ERROR(NeedsLayers(job, "hdps plan"));
  HDPS_ASSIGN_OR_RETURN(const JobShape shape, ShapeOf(job));
  HDPS_ASSIGN_OR_RETURN(const double rows, ReadRows(job));
  HDPS_ASSIGN_OR_RETURN(const double network, ReadNetwork());
  TableQuestion keys = {.servers = FLAGS_servers, .workers = FLAGS_workers};
  HDPS_ASSIGN_OR_RETURN(keys.laws, ReadLaws(job, shape));
  keys.rates = OverNetwork(job.parallel.rates, network, FLAGS_network_round_trip_us, FLAGS_servers,
                           FLAGS_workers);
  HDPS_ASSIGN_OR_RETURN(const WrittenJob text, ReadWrittenJob(files, flags.job));
  const PlacementQuestion question = {
      TableChoicesOf(job, keys, FitsJob(files, text, flags.overrides)), keys.rates};
  HDPS_ASSIGN_OR_RETURN(
      const PlacedJob placed,
      LoadPlacedJob(files, text, &flags.overrides, FLAGS_workers, DataFiles::kNotNeeded, question));
  PrintWarnings(placed.job.warnings);
  PrintOutText(PlacementText({placed, shape, FLAGS_servers, rows}));
  return {};
}

Status Run() {
  HDPS_ASSIGN_OR_RETURN(CommonFlags flags, ReadCommonFlags());
  HDPS_RETURN_IF_ERROR(CheckFlags(flags));
  if (!FLAGS_strategy && (!FLAGS_strategy_file.empty() || !FLAGS_dot.empty())) {
    return {Code::kInvalidArgument,
            "--strategy_file and --dot show a strategy; give --strategy as well"};
  }
  if (FLAGS_strategy && FLAGS_placement) {
    return {Code::kInvalidArgument,
            "--strategy and --placement each take the place of the plan; give one of the two"};
  }
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  if (FLAGS_placement) return ShowPlacement(*files, flags);
  HDPS_ASSIGN_OR_RETURN(const Job job, LoadPlannedJob(*files, flags.job, &flags.overrides,
                                                      FLAGS_workers, DataFiles::kNotNeeded));
  HDPS_RETURN_IF_ERROR(NeedsLayers(job, "hdps plan"));
  PrintWarnings(job.warnings);
  if (FLAGS_strategy) return ShowStrategy(*files, job);
  HDPS_ASSIGN_OR_RETURN(PlanQuestion question, ReadQuestion(job));
  HDPS_RETURN_IF_ERROR(ValidateCluster(job, FLAGS_servers, FLAGS_workers));
  MachineConstants constants;
  if (!FLAGS_constants.empty()) {
    HDPS_ASSIGN_OR_RETURN(constants, ReadConstants(*files, FLAGS_constants));
  }
  question.cores = flags.threads > 0 ? static_cast<uint32_t>(flags.threads)
                                     : static_cast<uint32_t>(constants.cores);
  const std::string mode(WordOf(job.train.mode));
  const std::string too_small = LimitRows(job, &question);
  const PlanSubject subject = {job.name,
                               job.model.type,
                               mode,
                               FLAGS_network,
                               FLAGS_constants,
                               too_small,
                               job.model.precision == Precision::kBf16};
  const PlanAnswer answer = Plan(question, constants);
  PrintOutText(FLAGS_json ? PlanJson(subject, question, answer)
                          : PlanText(subject, question, answer));
  return Status();
}

}  // namespace

Subcommand PlanCommand() {
  return {"plan",
          "estimate how fast a job trains on a cluster, and what limits it",
          "hdps plan --job=FILE --servers=M --workers=N --network=25Gbit [flags]",
          {"job", "set", "servers", "workers", "machines", "threads", "network",
           "network_round_trip_us", "rows", "row_bytes", "zipf", "unique", "constants", "json",
           "strategy", "strategy_file", "dot", "placement"},
          Run};
}

}  // namespace hdps
