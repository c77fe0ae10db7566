// hdps generate: a synthetic click log, or pictures of ten classes, with the best that can be
// reached.
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/nearest_name.h"
#include "common/platform/file_system.h"
#include "common/process/command_line.h"
#include "tools/commands.h"
#include "tools/synthetic/synthetic_digits.h"
#include "tools/synthetic/synthetic_job.h"
#include "tools/synthetic/synthetic_log.h"
#include "worker/data/number.h"

namespace hdps {
namespace {

struct GenerateOptions {
  std::string out;
  std::string kind = "log";
  std::string model = "linear";
  SyntheticLogSpec log;
  bool noise_given = false;
};

struct Flag {
  std::string name;
  std::string help;
  std::string expected;
  std::function<bool(const std::string&)> set;  // False: not what is expected.
};

Flag TextFlag(const char* name, const char* help, std::string* value) {
  return {name, help + std::string(" (default \"") + *value + "\")", "a text",
          [value](const std::string& text) {
            *value = text;
            return !text.empty();
          }};
}

template <typename Int>
Flag CountFlag(const char* name, const char* help, Int* value) {
  constexpr double kMax = sizeof(Int) == 4 ? 0xffffffffu : 1e15;
  return {name, help + std::string(" (default ") + std::to_string(*value) + ")",
          "a whole number from 0 on", [value](const std::string& text) {
            const std::optional<double> number = ParseNumber(text);
            if (!number || *number < 0 || *number > kMax) return false;
            *value = static_cast<Int>(*number);
            return static_cast<double>(*value) == *number;
          }};
}

Flag NumberFlag(const char* name, const char* help, double* value) {
  return {name, help + std::string(" (default ") + std::to_string(*value) + ")", "a number",
          [value](const std::string& text) {
            const std::optional<double> number = ParseNumber(text);
            if (number) *value = *number;
            return number.has_value();
          }};
}

std::vector<Flag> FlagsOf(GenerateOptions* options) {
  SyntheticLogSpec& log = options->log;
  std::vector<Flag> flags = {
      TextFlag("out", "folder to write into; made if it is not there", &options->out),
      TextFlag("kind", "log: train.tsv, eval.tsv of Criteo's layout; digits: train.csv, eval.csv",
               &options->kind),
      TextFlag("model", "what decides the labels: linear, pairwise, crosses, dot, wide_deep",
               &options->model),
      CountFlag("rows", "training rows", &log.rows),
      CountFlag("eval_rows", "evaluation rows", &log.eval_rows),
      CountFlag("numeric", "numeric columns that are filled, at most 13", &log.numeric),
      CountFlag("categorical", "categorical columns that are filled, at most 26", &log.categorical),
      CountFlag("vocabulary", "values of each categorical column", &log.vocabulary),
      NumberFlag("zipf", "exponent of the values' frequency by rank", &log.zipf),
      CountFlag("seed", "decides everything", &log.seed),
      NumberFlag("signal", "standard deviation of the planted logit", &log.signal),
      NumberFlag("ctr", "mean probability of label 1", &log.ctr),
      NumberFlag("noise", "log: share of labels a coin decides; digits: deviation of a pixel",
                 &log.noise),
      NumberFlag("missing", "share of the cells that are empty", &log.missing)};
  for (Flag& flag : flags) {
    if (flag.name != "noise") continue;
    flag.set = [set = flag.set, options](const std::string& text) {
      options->noise_given = true;
      return set(text);
    };
  }
  return flags;
}

Status Mistaken(const std::string& message) { return {Code::kInvalidArgument, message}; }

// `--name=value` or `--name value` each.
Status ParseFlags(const std::vector<Flag>& flags, const std::vector<std::string>& arguments) {
  std::vector<std::string> names;
  for (const Flag& flag : flags) names.push_back(flag.name);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (!argument.starts_with("-")) {
      return Mistaken("argument '" + argument + "': expected --name=value");
    }
    const size_t begin = argument.find_first_not_of('-');
    const size_t equals = argument.find('=');
    const std::string name =
        begin == std::string::npos ? "" : argument.substr(begin, equals - begin);
    const Flag* flag = nullptr;
    for (const Flag& known : flags) flag = known.name == name ? &known : flag;
    if (flag == nullptr)
      return Mistaken("unknown flag '" + argument + "'" + DidYouMean(name, names));
    std::string value;
    if (equals != std::string::npos) {
      value = argument.substr(equals + 1);
    } else if (i + 1 < arguments.size()) {
      value = arguments[++i];
    }
    if (!flag->set(value)) {
      return Mistaken("--" + name + "=" + value + ": expected " + flag->expected);
    }
  }
  return {};
}

void PrintHelp(const std::vector<Flag>& flags) {
  std::printf(
      "hdps generate --out=DIR [--name=value ...]\n"
      "Writes a data set with a planted model and a job file that trains on it, job.json, and\n"
      "prints the best that can be reached.\n");
  for (const Flag& flag : flags) {
    std::printf("  --%-12s %s\n", flag.name.c_str(), flag.help.c_str());
  }
}

// A job beside the data, and the command that trains it. One that is there already may have been
// changed by its owner, and stays.
Status WriteJob(FileSystem& files, const std::string& out, const std::string& job) {
  const std::string path = JoinPath(out, "job.json");
  constexpr uint64_t kJobBytesMax = 1u << 20;
  if (!files.Exists(path)) {
    HDPS_RETURN_IF_ERROR(WriteFileAtomically(files, path, job));
  } else if (const Result<std::string> there = ReadWholeFile(files, path, kJobBytesMax);
             !there.ok() || *there != job) {
    std::printf("%s is another job than would be written, and was left as it is\n", path.c_str());
  }
  std::printf("to train on it: hdps train --job=%s --out=%s\n", path.c_str(),
              JoinPath(out, "run").c_str());
  return {};
}

Status GenerateLog(FileSystem& files, const GenerateOptions& options) {
  SyntheticLogSpec spec = options.log;
  const std::optional<TeacherFamily> family = TeacherFamilyOf(options.model);
  if (!family) {
    return Mistaken(
        "--model=" + options.model + ": expected linear, pairwise, crosses, dot or wide_deep" +
        DidYouMean(options.model, {"linear", "pairwise", "crosses", "dot", "wide_deep"}));
  }
  spec.family = *family;
  HDPS_ASSIGN_OR_RETURN(const BestReachable best, WriteSyntheticLog(files, options.out, spec));
  const char* out = options.out.c_str();
  std::printf("%s/train.tsv: %llu rows; %s/eval.tsv: %llu rows; planted: %s, seed %llu\n", out,
              static_cast<unsigned long long>(spec.rows), out,
              static_cast<unsigned long long>(spec.eval_rows), options.model.c_str(),
              static_cast<unsigned long long>(spec.seed));
  std::printf("best reachable AUC on eval.tsv: %.5f (mean over draws of the labels: %.5f)\n",
              best.auc, best.expected_auc);
  std::printf("best reachable logloss: %.5f, CTR: %.4f\n", best.logloss, best.ctr);
  return WriteJob(files, options.out, JobOfLog(spec));
}

Status GenerateDigits(FileSystem& files, const GenerateOptions& options) {
  SyntheticDigitsSpec spec;
  spec.rows = options.log.rows;
  spec.eval_rows = options.log.eval_rows;
  spec.seed = options.log.seed;
  if (options.noise_given) spec.noise = options.log.noise;
  HDPS_ASSIGN_OR_RETURN(const double accuracy, WriteSyntheticDigits(files, options.out, spec));
  const char* out = options.out.c_str();
  std::printf("%s/train.csv: %llu rows; %s/eval.csv: %llu rows; seed %llu\n", out,
              static_cast<unsigned long long>(spec.rows), out,
              static_cast<unsigned long long>(spec.eval_rows),
              static_cast<unsigned long long>(spec.seed));
  std::printf("accuracy of the nearest prototype on eval.csv: %.4f\n", accuracy);
  return WriteJob(files, options.out, JobOfDigits());
}

Status Generate(const std::vector<std::string>& arguments) {
  GenerateOptions options;
  const std::vector<Flag> flags = FlagsOf(&options);
  for (const std::string& argument : arguments) {
    if (argument != "--help" && argument != "-h") continue;
    PrintHelp(flags);
    return {};
  }
  HDPS_RETURN_IF_ERROR(ParseFlags(flags, arguments));
  if (options.out.empty()) return Mistaken("--out is missing: expected --out=DIR to write into");
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  if (options.kind == "log") return GenerateLog(*files, options);
  if (options.kind == "digits") return GenerateDigits(*files, options);
  return Mistaken("--kind=" + options.kind + ": expected log or digits");
}

}  // namespace

int GenerateMain(int argc, char** argv) {
  const Status status = Generate(std::vector<std::string>(argv + 1, argv + argc));
  return status.ok() ? kExitDone : ReportAndExitStatus("hdps generate", status);
}

}  // namespace hdps
