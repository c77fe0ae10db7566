// Answers questions to the version that is at hand.
#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "common/job/job_spec.h"
#include "common/job/spec/table_spec.h"
#include "tools/serve/versions/lookup_table.h"
#include "tools/serve/versions/model_note.h"
#include "tools/serve/versions/served_checkpoint.h"

namespace hdps {
namespace {

const std::vector<ScoreOutput>& WantedOf(const ScoreRequest& request) {
  static const std::vector<ScoreOutput> kUsual = {ScoreOutput::kPrediction};
  return request.outputs.empty() ? kUsual : request.outputs;
}

// Takes the scores of the rows [begin, end) out of those of a batch, with the keys of one of its
// parts.
ScoredRows PartOf(const ScoredRows& scored, size_t part, size_t parts, uint64_t begin,
                  uint64_t end) {
  ScoredRows own;
  own.step = scored.step;
  own.rows = end - begin;
  const auto cut = [&](const std::vector<float>& all, std::vector<float>* some) {
    const uint64_t width = all.size() / scored.rows;
    some->assign(all.begin() + static_cast<int64_t>(begin * width),
                 all.begin() + static_cast<int64_t>(end * width));
  };
  cut(scored.predictions, &own.predictions);
  cut(scored.logits, &own.logits);
  const auto of_part = [part, parts](const std::vector<uint64_t>& all) {
    const size_t features = all.size() / parts;
    const auto first = all.begin() + static_cast<int64_t>(part * features);
    return std::vector<uint64_t>(first, first + static_cast<int64_t>(features));
  };
  own.keys = of_part(scored.keys);
  own.unknown_keys = of_part(scored.unknown_keys);
  return own;
}

}  // namespace

Status ServedCheckpoint::CheckAnswers(Clock step, const RowScorer& version) const {
  const Clock answers = version.step();
  if (step == kNoClock || step == answers) return {};
  return {Code::kNotFound, "version " + std::to_string(step) + " of the model " + note_.name +
                               " does not answer, version " + std::to_string(answers) +
                               " does; :use takes one of " + ListedSteps(steps())};
}

Result<ScoreAnswer> ServedCheckpoint::Score(const ScoreRequest& request, Clock step) {
  const auto [version, towers] = CurrentVersion();
  HDPS_RETURN_IF_ERROR(CheckAnswers(step, *version));
  const std::vector<ScoreOutput>& wanted = WantedOf(request);
  if (towers != nullptr && std::ranges::any_of(wanted, TowerOutputs::Makes)) {
    return ScoreTowers(request, wanted, *version, *towers);
  }
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

// Rows with the inputs of one tower alone are not scored. No delta is applied to such a version.
Result<ScoreAnswer> ServedCheckpoint::ScoreTowers(const ScoreRequest& request,
                                                  std::span<const ScoreOutput> wanted,
                                                  RowScorer& version, TowerOutputs& towers) {
  ScoreAnswer answer;
  answer.step = version.step();
  answer.rows = request.rows->num_rows();
  ScoredRows scored;
  if (!std::ranges::all_of(wanted, TowerOutputs::Makes)) {
    HDPS_ASSIGN_OR_RETURN(scored,
                          version.Score(request.rows, {.logits = true, .unknown_keys = true}));
  }
  for (const ScoreOutput& output : wanted) {
    if (TowerOutputs::Makes(output)) {
      HDPS_RETURN_IF_ERROR(towers.Add(output, request, &answer.outputs));
      continue;
    }
    HDPS_ASSIGN_OR_RETURN(std::vector<OutputColumn> columns,
                          OutputColumns(note_, version.job(), {&output, 1}, scored));
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

bool ServedCheckpoint::MayJoin(const ScoreRequest& a, const ScoreRequest& b) const {
  // The first line of a table tells how its lines are read.
  return note_.has_columns && WantedOf(a) == WantedOf(b) &&
         std::ranges::none_of(WantedOf(a), TowerOutputs::Makes) &&
         AreAlike(a.rows->columns(), b.rows->columns());
}

// If one row of them cannot be read, each is scored alone, so that only its own request hears of
// it.
std::vector<Result<ScoreAnswer>> ServedCheckpoint::ScoreTogether(
    std::span<const ScoreRequest* const> requests, Clock step) {
  std::vector<std::optional<Result<ScoreAnswer>>> answers(requests.size());
  for (size_t first = 0; first < requests.size(); ++first) {
    if (answers[first]) continue;
    std::vector<size_t> fitting;
    std::vector<const ScoreRequest*> joined;
    for (size_t i = first; i < requests.size(); ++i) {
      if (answers[i] || (i > first && !MayJoin(*requests[first], *requests[i]))) continue;
      fitting.push_back(i);
      joined.push_back(requests[i]);
    }
    if (joined.size() > 1) {
      Result<std::vector<ScoreAnswer>> scored = ScoreJoined(joined, step);
      for (size_t i = 0; scored.ok() && i < fitting.size(); ++i) {
        answers[fitting[i]] = std::move((*scored)[i]);
      }
    }
    for (const size_t i : fitting) {
      if (!answers[i]) answers[i] = Score(*requests[i], step);
    }
  }
  std::vector<Result<ScoreAnswer>> all;
  for (std::optional<Result<ScoreAnswer>>& answer : answers) all.push_back(*std::move(answer));
  return all;
}

Result<std::vector<ScoreAnswer>> ServedCheckpoint::ScoreJoined(
    std::span<const ScoreRequest* const> requests, Clock step) {
  const std::shared_ptr<RowScorer> version = Current();
  HDPS_RETURN_IF_ERROR(CheckAnswers(step, *version));
  const std::vector<ScoreOutput>& wanted = WantedOf(*requests[0]);
  std::vector<std::shared_ptr<const ColumnTable>> tables;
  std::vector<uint64_t> ends;
  for (const ScoreRequest* const request : requests) {
    tables.push_back(request->rows);
    ends.push_back((ends.empty() ? 0 : ends.back()) + request->rows->num_rows());
  }
  const bool logits = std::ranges::find(wanted, ScoreOutput::kLogit) != wanted.end();
  HDPS_ASSIGN_OR_RETURN(
      const ScoredRows scored,
      version->Score(ColumnTable::Joined(tables),
                     {.logits = logits, .unknown_keys = true, .part_ends = ends}));
  if (step != kNoClock && scored.step != step) return CheckAnswers(step, *version);
  std::vector<ScoreAnswer> answers(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    ScoredRows part = PartOf(scored, i, requests.size(), i == 0 ? 0 : ends[i - 1], ends[i]);
    answers[i].step = part.step;
    answers[i].rows = part.rows;
    answers[i].begins_batch = i == 0;
    HDPS_ASSIGN_OR_RETURN(answers[i].outputs, OutputColumns(note_, version->job(), wanted, part));
    answers[i].keys = std::move(part.keys);
    answers[i].unknown_keys = std::move(part.unknown_keys);
    sample_.Offer(requests[i]->rows);
  }
  return answers;
}

}  // namespace hdps
