// Implements hdps evaluate: measures the scores of a checkpoint.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/metrics/score_book.h"
#include "common/platform/random.h"
#include "common/process/terminal.h"
#include "tools/scoring/scored_data.h"

namespace hdps {
namespace {

// Returns the folder for scores that do not fit into memory; it is created when needed.
std::string ScratchFolder() {
  return (std::filesystem::temp_directory_path() /
          ("hdps_evaluate_" + std::to_string(NewPeerId().value)))
      .string();
}

// `hint` is printed if there is no such figure.
void PrintFigure(std::ostream& to, const Figure& figure, const std::string& hint) {
  const bool told = std::isfinite(figure.value);
  char line[128];
  std::snprintf(line, sizeof(line), told ? "%-10s %.6f" : "%-10s undefined", figure.word.c_str(),
                figure.value);
  const std::string why = figure.about + hint;
  to << line << (why.empty() ? "" : told ? " (" + why + ")" : ": " + why) << "\n";
}

}  // namespace

Status RunEvaluate(const CommonFlags& flags, FileSystem& files, Executor& executor,
                   std::ostream& to) {
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<ScoredData> data,
                        ScoredData::Open(flags, files, executor));
  if (flags.dry_run) {
    to << data->DescribePlacement();
    return Status();
  }
  if (!data->tells()) {
    return data->Score({}, [](const ScoredBatch&) { return Status(); }).status();
  }
  std::vector<TaskMetrics> metrics = data->Metrics();
  // Compatibility: with softmax, the accuracy has always been printed beside the loss.
  if (data->softmax() && metrics[0].words == std::vector<std::string>{"logloss"}) {
    metrics[0].words.emplace_back("accuracy");
  }
  ScoreBook book(files, ScratchFolder(), std::move(metrics));
  ExampleScores scores;
  const auto take = [&](const ScoredBatch& scored) {
    scores.Clear();
    scores.Add(data->job(), scored.batch, scored.scores);
    return book.Add(scores.scores, scores.labels, scores.weights, scores.groups);
  };
  HDPS_ASSIGN_OR_RETURN(const ScoreSums sums, data->Score({}, take));
  if (sums.examples == 0) {
    return Status(Code::kInvalidArgument,
                  "--data: there is no row in these files; give files with rows");
  }
  if (const std::string unknown = data->UnknownKeysTold(); !unknown.empty()) {
    PrintError("%s\n", unknown.c_str());
  }
  to << "checkpoint " << data->checkpoint() << "\n";
  to << "examples   " << sums.examples << "\n";
  if (const std::string int8 = data->RowsInInt8(); !int8.empty())
    to << "weights    " << int8 << "\n";
  if (sums.labels.unknown_ids > 0) {
    to << "unknown ids " << sums.labels.unknown_ids << ", from their vocab_size on: zeros\n";
  }
  if (sums.bad_rows > 0) to << "bad rows   " << sums.bad_rows << "\n";
  HDPS_ASSIGN_OR_RETURN(ScoreBook::Told told, book.Finish(sums.loss_sum / sums.weight_sum));
  // Compatibility: the logloss has always come first.
  std::ranges::stable_partition(told.figures,
                                [](const Figure& figure) { return figure.word == "logloss"; });
  for (const Figure& figure : told.figures) {
    const bool of_labels = figure.word == "auc" && !std::isfinite(figure.value);
    PrintFigure(to, figure, of_labels ? data->TextsHint(sums.labels) : "");
  }
  return Status();
}

}  // namespace hdps
