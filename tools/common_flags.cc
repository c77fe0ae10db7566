// Defines the flags that subcommands share, because gflags knows each name only once.
#include "tools/common_flags.h"

#include <gflags/gflags.h>

#include <charconv>
#include <cmath>
#include <system_error>

#include "common/base/nearest_name.h"
#include "common/base/shell_word.h"
#include "common/job/job_file.h"
#include "common/job/setting_paths.h"

DEFINE_string(job, "", "Job file");
DEFINE_string(set, "", "Fields of the job file to override: key.path=value,...");
DEFINE_string(
    out, "",
    "train, member, replay, doctor: folder for results; predict, trace: file to write; generate, "
    "prepare, export, keygen: folder to write; deploy: folder of the volume for results, out/NAME "
    "if not given");
DEFINE_string(
    checkpoint, "",
    "Folder of a checkpoint, or the --out of a run. A path that does not exist here and begins "
    "with NAME: is rclone's, and is fetched first");
DEFINE_string(data, "",
              "Files to score, FILE,..., where a name with a comma stands alone or in double "
              "quotes; empty: the job's data.eval");
DEFINE_string(which, "",
              "Checkpoint that is taken from a folder of several: best, by its evaluation, newest, "
              "or for hdps serve also a step; empty: best, and newest for hdps serve");
DEFINE_string(eval_set, "", "Name of the job's evaluation set to score; empty: its first");
DEFINE_int64(max_bad_rows, -1,
             "Number of bad rows that are skipped before the command ends; -1: the job file's "
             "data.max_bad_rows, and for prepare one in a hundred");
DEFINE_string(numeric, "",
              "generate: number of numeric columns that are filled, at most 13 and 13 if not "
              "given; prepare: columns that are numbers, NAME,...");
DEFINE_string(categorical, "",
              "generate: number of categorical columns that are filled, at most 26 and 26 if not "
              "given; prepare: columns whose values name something, NAME,...");
DEFINE_string(log, "info", "Lowest level that is logged: info, warning or error");
DEFINE_bool(json, false, "Print JSON");
DEFINE_string(rows, "",
              "generate: number of training rows, 100k if not given; plan, deploy: number of "
              "distinct keys of the data, if not given that of the job's data.distinct or 10M; "
              "doctor: the same, without which memory and disk are not foreseen; written as 20000, "
              "500M or 4.6G");
DEFINE_string(format, "",
              "generate: format of digits: csv if not given, or idx as MNIST has it "
              "(train-images-idx3-ubyte and so on); export: safetensors, onnx, vectors or serving");
DEFINE_string(
    weights, "saved",
    "evaluate, predict: how rows are held in memory: saved, as the checkpoint has them, or int8, "
    "in 8 bits a weight with a scale for each row. export: numbers of the tables: f32, which saved "
    "means too, f16 or bf16");
DEFINE_double(zipf, 1.05,
              "Exponent of the keys' frequency by rank, which says how unequal they are");
DEFINE_int32(
    threads, 0,
    "Number of computing threads; 0: one per core. plan: cores of each machine; 0: as measured");

namespace hdps {

std::optional<double> ParseWithUnit(std::string_view text,
                                    std::initializer_list<NumberUnit> units) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !std::isfinite(value) || value < 0) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  for (const NumberUnit& unit : units) {
    if (text == unit.name) return value * unit.factor;
  }
  return std::nullopt;
}

Result<double> ReadRowsFlag(double usual) {
  if (FLAGS_rows.empty()) return usual;
  const std::optional<double> rows =
      ParseWithUnit(FLAGS_rows, {{"", 1}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}});
  if (rows && *rows >= 1) return *rows;
  return Status(Code::kInvalidArgument,
                "--rows=" + FLAGS_rows + ": expected a number from 1 on, as 20000, 500M or 4.6G");
}

std::string SettingNamed(const std::string& name, const std::string& value) {
  const std::vector<std::string> paths = PathsOfSettings(name);
  if (paths.size() != 1) return "";
  return paths[0] + " is a setting of the job: --set=" +
         ShellWord(paths[0] + "=" + (value.empty() ? "VALUE" : value));
}

Result<int> ReadThreadsFlag() {
  constexpr int kThreadsMax = 4096;
  if (FLAGS_threads >= 0 && FLAGS_threads <= kThreadsMax) return FLAGS_threads;
  return Status(Code::kInvalidArgument,
                "--threads=" + std::to_string(FLAGS_threads) +
                    " is out of range; give 1 to 4096, or 0 for one per core");
}

Result<CommonFlags> ReadCommonFlags() {
  HDPS_ASSIGN_OR_RETURN(const int threads, ReadThreadsFlag());
  if (!FLAGS_which.empty() && FLAGS_which != "best" && FLAGS_which != "newest") {
    return Status(Code::kInvalidArgument, "--which=" + FLAGS_which + ": expected best or newest" +
                                              DidYouMean(FLAGS_which, {"best", "newest"}));
  }
  CommonFlags flags;
  flags.which = FLAGS_which == "newest" ? WhichCheckpoint::kNewest : WhichCheckpoint::kBest;
  flags.eval_set = FLAGS_eval_set;
  flags.job = FLAGS_job;
  flags.overrides = SplitOverrides(FLAGS_set);
  if (FLAGS_max_bad_rows >= 0) {
    flags.overrides.push_back("data.max_bad_rows=" + std::to_string(FLAGS_max_bad_rows));
  }
  flags.out = FLAGS_out;
  flags.checkpoint = FLAGS_checkpoint;
  flags.log = FLAGS_log;
  flags.threads = threads;
  flags.data = FLAGS_data;
  return flags;
}

}  // namespace hdps
