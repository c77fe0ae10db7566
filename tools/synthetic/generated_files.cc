// Implements both kinds of data.
#include "tools/synthetic/generated_files.h"

#include "common/base/nearest_name.h"
#include "common/base/show_number.h"
#include "tools/synthetic/synthetic_digits.h"
#include "tools/synthetic/synthetic_job.h"

namespace hdps {
namespace {

Status Mistaken(const std::string& message) { return {Code::kInvalidArgument, message}; }

// Writes the job beside the data unless there is one, and says how to train it.
Status WriteJob(FileSystem& files, const std::string& out, const std::string& job,
                GeneratedFiles* made) {
  made->job = JoinPath(out, "job.json");
  constexpr uint64_t kJobBytesMax = 1u << 20;
  if (!files.Exists(made->job)) {
    HDPS_RETURN_IF_ERROR(WriteFileAtomically(files, made->job, job));
  } else if (const Result<std::string> there = ReadWholeFile(files, made->job, kJobBytesMax);
             !there.ok() || *there != job) {
    made->text += made->job + " is another job than would be written, and was left as it is\n";
  }
  made->text +=
      "to train on it: hdps train --job=" + made->job + " --out=" + JoinPath(out, "run") + "\n";
  return {};
}

Result<GeneratedFiles> GenerateLog(FileSystem& files, const GenerateRequest& request) {
  const std::string model = request.model.empty() ? "linear" : request.model;
  const std::optional<TeacherFamily> family = TeacherFamilyOf(model);
  if (!family) {
    return Mistaken("--model=" + request.model +
                    ": expected linear, pairwise, crosses, dot, wide_deep, pooled, field_pairs or "
                    "triples" +
                    DidYouMean(request.model, TeacherFamilies()));
  }
  SyntheticLogSpec spec = request.log;
  spec.family = *family;
  if (request.noise) spec.noise = *request.noise;
  HDPS_ASSIGN_OR_RETURN(const BestReachable best, WriteSyntheticLog(files, request.out, spec));
  GeneratedFiles made;
  made.figures = {{"auc", best.auc},
                  {"expected_auc", best.expected_auc},
                  {"logloss", best.logloss},
                  {"ctr", best.ctr}};
  made.text = request.out + "/train.tsv: " + std::to_string(spec.rows) + " rows; " + request.out +
              "/eval.tsv: " + std::to_string(spec.eval_rows) + " rows; planted: " + model +
              ", seed " + std::to_string(spec.seed) + "\n" +
              ShowNumber("best reachable AUC on eval.tsv: %.5f", best.auc) +
              ShowNumber(" (mean over draws of the labels: %.5f)\n", best.expected_auc) +
              ShowNumber("best reachable logloss: %.5f", best.logloss) +
              ShowNumber(", CTR: %.4f\n", best.ctr);
  HDPS_RETURN_IF_ERROR(WriteJob(files, request.out, JobOfLog(spec), &made));
  return made;
}

Result<GeneratedFiles> GenerateDigits(FileSystem& files, const GenerateRequest& request) {
  SyntheticDigitsSpec spec;
  spec.rows = request.log.rows;
  spec.eval_rows = request.log.eval_rows;
  spec.seed = request.log.seed;
  if (request.noise) spec.noise = *request.noise;
  if (request.format != "csv" && request.format != "idx") {
    return Mistaken("--format=" + request.format + ": expected csv or idx");
  }
  spec.idx = request.format == "idx";
  HDPS_ASSIGN_OR_RETURN(const double accuracy, WriteSyntheticDigits(files, request.out, spec));
  const std::string train = DigitsFile(spec, "train"), eval = DigitsFile(spec, "eval");
  GeneratedFiles made;
  made.figures = {{"accuracy", accuracy}};
  made.text = request.out + "/" + train + ": " + std::to_string(spec.rows) + " rows; " +
              request.out + "/" + eval + ": " + std::to_string(spec.eval_rows) + " rows; seed " +
              std::to_string(spec.seed) + "\naccuracy of the nearest prototype on " + eval +
              ShowNumber(": %.4f\n", accuracy);
  HDPS_RETURN_IF_ERROR(WriteJob(files, request.out, JobOfDigits(spec), &made));
  return made;
}

}  // namespace

Result<GeneratedFiles> GenerateFiles(FileSystem& files, const GenerateRequest& request) {
  if (request.out.empty()) return Mistaken("--out is missing: expected --out=DIR to write into");
  if (request.kind == "log") return GenerateLog(files, request);
  if (request.kind == "digits") return GenerateDigits(files, request);
  return Mistaken("--kind=" + request.kind + ": expected log or digits");
}

}  // namespace hdps
