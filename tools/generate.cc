// Defines the flags of hdps generate: makes a synthetic click log or pictures of ten classes, and
// tells the best possible figures.
#include <gflags/gflags.h>

#include <charconv>
#include <memory>
#include <string>

#include "common/platform/file_system.h"
#include "common/process/terminal.h"
#include "tools/commands.h"
#include "tools/common_flags.h"
#include "tools/synthetic/generated_files.h"

DEFINE_string(kind, "log",
              "Kind of data: log gives train.tsv and eval.tsv in Criteo's layout, digits gives "
              "train.csv and eval.csv");
DECLARE_string(format);
DEFINE_string(
    model, "",
    "generate: model that decides the labels: linear (if not given), pairwise, crosses, dot, "
    "wide_deep, pooled, field_pairs, triples; prepare: the job's model.type, wide_deep if "
    "not given; "
    "serve: a model in place of --checkpoint and --name, NAME:OUT, more than once for several");
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

// Reads a number of columns from a flag (prepare takes names in the same flag); empty: all columns.
Status ReadColumns(const std::string& flag, const std::string& text, uint32_t* columns) {
  if (text.empty()) return {};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *columns);
  if (error == std::errc() && end == text.data() + text.size()) return {};
  return Mistaken("--" + flag + "=" + text + ": expected a number of columns");
}

Status Generate() {
  HDPS_ASSIGN_OR_RETURN(const CommonFlags flags, ReadCommonFlags());
  GenerateRequest request;
  request.out = flags.out;
  request.kind = FLAGS_kind;
  if (!FLAGS_format.empty()) request.format = FLAGS_format;
  request.model = FLAGS_model;
  SyntheticLogSpec& spec = request.log;
  HDPS_ASSIGN_OR_RETURN(const double rows, ReadRowsFlag(spec.rows));
  spec.rows = static_cast<uint64_t>(rows);
  spec.eval_rows = FLAGS_eval_rows;
  if (FLAGS_kind == "log") {
    HDPS_RETURN_IF_ERROR(ReadColumns("numeric", FLAGS_numeric, &spec.numeric));
    HDPS_RETURN_IF_ERROR(ReadColumns("categorical", FLAGS_categorical, &spec.categorical));
  }
  spec.vocabulary = FLAGS_vocabulary;
  spec.zipf = FLAGS_zipf;
  spec.seed = FLAGS_seed;
  spec.signal = FLAGS_signal;
  spec.ctr = FLAGS_ctr;
  if (FLAGS_noise >= 0) request.noise = FLAGS_noise;
  spec.missing = FLAGS_missing;
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  HDPS_ASSIGN_OR_RETURN(const GeneratedFiles made, GenerateFiles(*files, request));
  PrintOutText(made.text);
  return {};
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
