// Reads files as tables, and asks the model for each.
#include "tools/serve/watch/evaluation_answers.h"

#include <filesystem>
#include <utility>

#include "common/job/data_paths.h"
#include "common/job/eval_sets.h"
#include "common/job/job_spec.h"
#include "common/protocol/manifest.h"
#include "worker/data/columnar/file_tables.h"

namespace hdps {

Result<EvaluationAnswers> EvaluationAnswers::Read(FileSystem& files, const Job& job) {
  const std::vector<EvalSet> sets = EvalSetsOf(job.data);
  if (sets.empty()) return Status(Code::kInvalidArgument, "the job has no evaluation data");
  std::vector<std::string> paths;
  for (const std::string& path : sets[0].files) {
    HDPS_ASSIGN_OR_RETURN(const std::vector<std::string> here, FilesOf(files, path));
    if (here.empty()) {
      return Status(Code::kInvalidArgument,
                    "the job was evaluated with \"" + path + "\", and there is no file " +
                        std::filesystem::absolute(path).lexically_normal().string());
    }
    paths.insert(paths.end(), here.begin(), here.end());
  }
  ReaderOptions options;
  options.side = sets[0].held_out ? RowSide::kHeldOut : RowSide::kAll;
  options.seed = job.seed;
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<FileTables> tables,
                        FileTables::Open(files, job.data, std::move(paths), options));
  EvaluationAnswers answers;
  for (uint64_t rows = 0; rows < kRowsMax; rows += kRowsOfRequest) {
    HDPS_ASSIGN_OR_RETURN(std::shared_ptr<const ColumnTable> table, tables->Next(kRowsOfRequest));
    if (table == nullptr) break;
    answers.tables_.push_back(std::move(table));
  }
  if (answers.tables_.empty()) {
    return Status(Code::kInvalidArgument, "there is no row in the job's evaluation data");
  }
  return answers;
}

Result<AnswerTotals> EvaluationAnswers::Score(ServedModel& model, size_t tasks) const {
  AnswerSums sums(model.features().size(), tasks);
  Status refused;
  for (const std::shared_ptr<const ColumnTable>& table : tables_) {
    ScoreRequest request;
    request.rows = table;
    const Result<ScoreAnswer> answer = model.Score(request, kNoClock);
    if (answer.ok()) {
      sums.Add(request, *answer);
    } else {
      refused = answer.status();
    }
  }
  AnswerTotals totals = sums.Read();
  if (totals.rows == 0) return refused;
  return totals;
}

}  // namespace hdps
