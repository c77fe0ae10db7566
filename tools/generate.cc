// Implements hdps generate: makes a synthetic click log or pictures of ten classes, and tells the
// best possible figures.
#include <gflags/gflags.h>

#include <charconv>
#include <memory>
#include <optional>
#include <string>

#include "common/base/nearest_name.h"
#include "common/platform/file_system.h"
#include "common/process/terminal.h"
#include "tools/commands.h"
#include "tools/common_flags.h"
#include "tools/synthetic/synthetic_digits.h"
#include "tools/synthetic/synthetic_job.h"
#include "tools/synthetic/synthetic_log.h"

DEFINE_string(kind, "log",
              "Kind of data: log gives train.tsv and eval.tsv in Criteo's layout, digits gives "
              "train.csv and eval.csv");
DECLARE_string(format);
DEFINE_string(
    model, "",
    "generate: model that decides the labels: linear (if not given), pairwise, crosses, dot, "
    "wide_deep, pooled, field_pairs, triples; prepare: the job's model.type, wide_deep if "
    "not given");
DEFINE_uint64(eval_rows, 20000, "Number of evaluation rows");
DECLARE_string(numeric);
DECLARE_string(categorical);
DEFINE_uint64(vocabulary, 1000, "Number of values of each categorical column");
DEFINE_uint64(seed, 1, "Seed of all random numbers: the same seed gives the same files");
DEFINE_double(signal, 1.5, "Standard deviation of the planted logit");
DEFINE_double(ctr, 0.25, "Mean probability of label 1");
DEFINE_double(noise, -1,
              "log: share of labels that a coin decides, 0 if not given; digits: standard "
              "deviation of a pixel, 0.25 if not given");
DEFINE_double(missing, 0.02, "Share of cells that are empty");
DECLARE_double(zipf);

namespace hdps {
namespace {

Status Mistaken(const std::string& message) { return {Code::kInvalidArgument, message}; }

// Writes a job beside the data and prints the command that trains it. An existing job is kept,
// because its owner may have changed it.
Status WriteJob(FileSystem& files, const std::string& out, const std::string& job) {
  const std::string path = JoinPath(out, "job.json");
  constexpr uint64_t kJobBytesMax = 1u << 20;
  if (!files.Exists(path)) {
    HDPS_RETURN_IF_ERROR(WriteFileAtomically(files, path, job));
  } else if (const Result<std::string> there = ReadWholeFile(files, path, kJobBytesMax);
             !there.ok() || *there != job) {
    PrintOut("%s is another job than would be written, and was left as it is\n", path.c_str());
  }
  PrintOut("to train on it: hdps train --job=%s --out=%s\n", path.c_str(),
           JoinPath(out, "run").c_str());
  return {};
}

// Reads a number of columns from a flag (prepare takes names in the same flag); empty: all columns.
Status ReadColumns(const std::string& flag, const std::string& text, uint32_t* columns) {
  if (text.empty()) return {};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *columns);
  if (error == std::errc() && end == text.data() + text.size()) return {};
  return Mistaken("--" + flag + "=" + text + ": expected a number of columns");
}

Status GenerateLog(FileSystem& files, const std::string& folder, uint64_t rows) {
  const std::string model = FLAGS_model.empty() ? "linear" : FLAGS_model;
  const std::optional<TeacherFamily> family = TeacherFamilyOf(model);
  if (!family) {
    return Mistaken("--model=" + FLAGS_model +
                    ": expected linear, pairwise, crosses, dot, wide_deep, pooled, field_pairs or "
                    "triples" +
                    DidYouMean(FLAGS_model, TeacherFamilies()));
  }
  SyntheticLogSpec spec;
  spec.rows = rows;
  spec.eval_rows = FLAGS_eval_rows;
  HDPS_RETURN_IF_ERROR(ReadColumns("numeric", FLAGS_numeric, &spec.numeric));
  HDPS_RETURN_IF_ERROR(ReadColumns("categorical", FLAGS_categorical, &spec.categorical));
  spec.vocabulary = FLAGS_vocabulary;
  spec.zipf = FLAGS_zipf;
  spec.seed = FLAGS_seed;
  spec.family = *family;
  spec.signal = FLAGS_signal;
  spec.ctr = FLAGS_ctr;
  if (FLAGS_noise >= 0) spec.noise = FLAGS_noise;
  spec.missing = FLAGS_missing;
  HDPS_ASSIGN_OR_RETURN(const BestReachable best, WriteSyntheticLog(files, folder, spec));
  const char* out = folder.c_str();
  PrintOut("%s/train.tsv: %llu rows; %s/eval.tsv: %llu rows; planted: %s, seed %llu\n", out,
           static_cast<unsigned long long>(spec.rows), out,
           static_cast<unsigned long long>(spec.eval_rows), model.c_str(),
           static_cast<unsigned long long>(spec.seed));
  PrintOut("best reachable AUC on eval.tsv: %.5f (mean over draws of the labels: %.5f)\n", best.auc,
           best.expected_auc);
  PrintOut("best reachable logloss: %.5f, CTR: %.4f\n", best.logloss, best.ctr);
  return WriteJob(files, folder, JobOfLog(spec));
}

Status GenerateDigits(FileSystem& files, const std::string& folder, uint64_t rows) {
  SyntheticDigitsSpec spec;
  spec.rows = rows;
  spec.eval_rows = FLAGS_eval_rows;
  spec.seed = FLAGS_seed;
  if (FLAGS_noise >= 0) spec.noise = FLAGS_noise;
  if (!FLAGS_format.empty() && FLAGS_format != "csv" && FLAGS_format != "idx") {
    return Mistaken("--format=" + FLAGS_format + ": expected csv or idx");
  }
  spec.idx = FLAGS_format == "idx";
  HDPS_ASSIGN_OR_RETURN(const double accuracy, WriteSyntheticDigits(files, folder, spec));
  const char* out = folder.c_str();
  PrintOut("%s/%s: %llu rows; %s/%s: %llu rows; seed %llu\n", out,
           DigitsFile(spec, "train").c_str(), static_cast<unsigned long long>(spec.rows), out,
           DigitsFile(spec, "eval").c_str(), static_cast<unsigned long long>(spec.eval_rows),
           static_cast<unsigned long long>(spec.seed));
  PrintOut("accuracy of the nearest prototype on %s: %.4f\n", DigitsFile(spec, "eval").c_str(),
           accuracy);
  return WriteJob(files, folder, JobOfDigits(spec));
}

Status Generate() {
  HDPS_ASSIGN_OR_RETURN(const CommonFlags flags, ReadCommonFlags());
  if (flags.out.empty()) return Mistaken("--out is missing: expected --out=DIR to write into");
  HDPS_ASSIGN_OR_RETURN(const double given, ReadRowsFlag(SyntheticLogSpec().rows));
  const auto rows = static_cast<uint64_t>(given);
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  if (FLAGS_kind == "log") return GenerateLog(*files, flags.out, rows);
  if (FLAGS_kind == "digits") return GenerateDigits(*files, flags.out, rows);
  return Mistaken("--kind=" + FLAGS_kind + ": expected log or digits");
}

}  // namespace

Subcommand GenerateCommand() {
  return {"generate",
          "write a synthetic click log with a known best AUC",
          "hdps generate --out=DIR [--rows=N] [flags]\n"
          "Writes data with a planted model and a job file that trains on it, job.json,\n"
          "and prints the best that can be reached.",
          {"out", "kind", "format", "model", "rows", "eval_rows", "numeric", "categorical",
           "vocabulary", "zipf", "seed", "signal", "ctr", "noise", "missing"},
          Generate};
}

}  // namespace hdps
