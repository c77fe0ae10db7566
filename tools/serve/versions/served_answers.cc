// Answers by the version at hand, each wholly by one step.
#include <algorithm>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include "common/job/job_spec.h"
#include "common/job/spec/table_spec.h"
#include "tools/serve/versions/lookup_table.h"
#include "tools/serve/versions/model_note.h"
#include "tools/serve/versions/served_checkpoint.h"

namespace hdps {

Status ServedCheckpoint::CheckAnswers(Clock step, const RowScorer& version) const {
  const Clock answers = version.step();
  if (step == kNoClock || step == answers) return {};
  return {Code::kNotFound, "version " + std::to_string(step) + " of the model " + note_.name +
                               " does not answer, version " + std::to_string(answers) +
                               " does; :use takes one of " + ListedSteps()};
}

Result<ScoreAnswer> ServedCheckpoint::Score(const ScoreRequest& request, Clock step) {
  Version now = CurrentVersion();
  HDPS_RETURN_IF_ERROR(CheckAnswers(step, *now.scorer));
  static const std::vector<ScoreOutput> kUsual = {ScoreOutput::kPrediction};
  const std::vector<ScoreOutput>& wanted = request.outputs.empty() ? kUsual : request.outputs;
  if (now.towers != nullptr && std::ranges::any_of(wanted, TowerOutputs::Makes)) {
    while (true) {
      Result<ScoreAnswer> answer = ScoreTowers(request, wanted, now);
      if (answer.status().code() != Code::kStaleView) return answer;
      now = CurrentVersion();
      HDPS_RETURN_IF_ERROR(CheckAnswers(step, *now.scorer));
    }
  }
  const std::shared_ptr<RowScorer>& version = now.scorer;
  const bool logits = std::ranges::find(wanted, ScoreOutput::kLogit) != wanted.end();
  HDPS_ASSIGN_OR_RETURN(ScoredRows scored,
                        version->Score(request.rows, {.logits = logits, .unknown_keys = true}));
  // A delta may have come in between.
  if (step != kNoClock && scored.step != step) return CheckAnswers(step, *version);
  ScoreAnswer answer;
  answer.step = scored.step;
  answer.rows = scored.rows;
  HDPS_ASSIGN_OR_RETURN(answer.outputs, OutputColumns(note_, version->job(), wanted, scored));
  answer.keys = std::move(scored.keys);
  answer.unknown_keys = std::move(scored.unknown_keys);
  sample_.Offer(request.rows);
  return answer;
}

// Rows with the inputs of one tower alone are not scored.
Result<ScoreAnswer> ServedCheckpoint::ScoreTowers(const ScoreRequest& request,
                                                  std::span<const ScoreOutput> wanted,
                                                  const Version& version) {
  TowerOutputs& towers = *version.towers;
  ScoreAnswer answer;
  answer.step = towers.step();
  answer.rows = request.rows->num_rows();
  ScoredRows scored;
  if (!std::ranges::all_of(wanted, TowerOutputs::Makes)) {
    HDPS_ASSIGN_OR_RETURN(
        scored, version.scorer->Score(request.rows, {.logits = true, .unknown_keys = true}));
    if (scored.step != answer.step) return Status(Code::kStaleView, "a delta came in between");
  }
  for (const ScoreOutput& output : wanted) {
    if (TowerOutputs::Makes(output)) {
      HDPS_RETURN_IF_ERROR(towers.Add(output, request, &answer.outputs));
      continue;
    }
    HDPS_ASSIGN_OR_RETURN(std::vector<OutputColumn> columns,
                          OutputColumns(note_, version.scorer->job(), {&output, 1}, scored));
    std::ranges::move(columns, std::back_inserter(answer.outputs));
  }
  answer.keys = std::move(scored.keys);
  answer.unknown_keys = std::move(scored.unknown_keys);
  answer.keys.resize(features_.size());
  answer.unknown_keys.resize(features_.size());
  return answer;
}

Result<LookupAnswer> ServedCheckpoint::Lookup(const LookupRequest& request, Clock step) {
  const std::shared_ptr<RowScorer> version = Current();
  HDPS_RETURN_IF_ERROR(CheckAnswers(step, *version));
  HDPS_ASSIGN_OR_RETURN(const TableId table, TableOfLookup(version->job(), request.table));
  std::vector<Key> keys = request.keys;
  if (!request.feature.empty()) {
    HDPS_RETURN_IF_ERROR(CheckReads(version->job(), request.table, request.feature));
    HDPS_ASSIGN_OR_RETURN(keys, version->KeysOf(request.feature, request.values));
  }
  LookupAnswer answer;
  answer.dim = version->job().tables[table.value].dim;
  answer.rows.resize(keys.size() * answer.dim);
  do {  // Again if a delta came in between.
    answer.step = version->step();
    version->Lookup(table, keys, answer.rows);
    answer.has_row = version->Contains(table, keys);
  } while (version->step() != answer.step);
  if (step != kNoClock && answer.step != step) return CheckAnswers(step, *version);
  return answer;
}

}  // namespace hdps
