// Implements hdps predict: a line of scores per row.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "common/metrics/probability.h"
#include "common/platform/output_file.h"
#include "common/process/terminal.h"
#include "tools/scoring/scored_data.h"

namespace hdps {
namespace {

// Formats batches of scores as lines, and counts rows without a score.
class Lines {
 public:
  Lines(const Job& job, bool nan_for_bad_rows) : nan_(nan_for_bad_rows) {
    for (const TaskSpec& task : TasksOf(job.model)) {
      logits_.push_back(task.loss == LossKind::kLogloss);
    }
  }

  // Returns kInvalidArgument for a score that is not a number, unless such lines were requested.
  Result<std::string> Of(const Batch& batch, std::span<const float> scores) {
    std::string text;
    const size_t per_row = batch.num_examples == 0 ? 0 : scores.size() / batch.num_examples;
    for (uint32_t row = 0; row < batch.num_examples; ++row) {
      const std::span<const float> of_row = scores.subspan(row * per_row, per_row);
      bool none = nan_ && batch.weights[row] == 0;  // A bad row, under BadRows::kKept.
      if (!none && std::ranges::any_of(of_row, [](float score) { return std::isnan(score); })) {
        none = true;
        if (!nan_) return NotANumber(batch.first_row + row + 1);
      }
      if (none) ++rows_without_;
      for (size_t i = 0; i < per_row; ++i) {
        text += none ? "nan" : Number(of_row[i], logits_[i % logits_.size()]);
        text += i + 1 == per_row ? '\n' : ' ';
      }
    }
    return text;
  }
  uint64_t rows_without() const { return rows_without_; }

 private:
  // %.9g distinguishes all floats.
  static std::string Number(float score, bool logit) {
    const auto value = static_cast<double>(score);
    char number[32];
    std::snprintf(number, sizeof(number), "%.9g",
                  logit ? static_cast<double>(static_cast<float>(ProbabilityOf(value))) : value);
    return number;
  }
  static Status NotANumber(uint64_t row) {
    return {Code::kInvalidArgument,
            "the score of row " + std::to_string(row) +
                " of the data is not a number: expected a model whose weights are finite, and "
                "numbers of the size that it was trained on (--bad_rows=nan gives nan in the line "
                "of such a row)"};
  }

  const bool nan_;
  std::vector<bool> logits_;  // [tasks]: the scores are logits of probabilities.
  uint64_t rows_without_ = 0;
};

// A redirection of the shell, as `>> data.csv`, may lead to one of the inputs.
Status RefuseInputs(const ScoredData& data, const std::string& out, FileSystem& files) {
  HDPS_ASSIGN_OR_RETURN(const std::vector<InputFile> inputs, data.Inputs());
  if (out.empty()) return RefuseInput(files, "where the lines go", "/dev/stdout", inputs);
  return RefuseInput(files, "--out=" + out, out, inputs);
}

}  // namespace

Status RunPredict(const CommonFlags& flags, FileSystem& files, Executor& executor,
                  std::ostream& to) {
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<ScoredData> data,
                        ScoredData::Open(flags, files, executor));
  if (flags.dry_run) {
    to << data->DescribePlacement();
    return Status();
  }
  if (data->held_out()) {
    return {Code::kInvalidArgument,
            "--data is missing, and what this job is evaluated on are rows that "
            "data.validation_share holds out of data.train: a line would not tell its row; give "
            "the files to score, --data=FILE,..."};
  }
  const RowsWanted rows = {.labels = false,
                           .bad_rows = flags.nan_for_bad_rows ? BadRows::kKept : BadRows::kRefused};
  if (!data->tells()) {
    return data->Score(rows, [](const Batch&, std::span<const float>) { return Status(); })
        .status();
  }
  HDPS_RETURN_IF_ERROR(RefuseInputs(*data, flags.out, files));
  const std::string what = data->WhatScoresAre();
  if (!what.empty()) PrintError("%s\n", what.c_str());
  if (const std::string int8 = data->RowsInInt8(); !int8.empty()) {
    PrintError("weights are %s\n", int8.c_str());
  }
  std::unique_ptr<WritableFile> file;
  if (!flags.out.empty()) {
    Result<std::unique_ptr<WritableFile>> created = CreateAtomically(files, flags.out);
    if (!created.ok()) {
      return {Code::kInvalidArgument,
              "--out=" + flags.out + " cannot be written to: " + created.status().message()};
    }
    file = *std::move(created);
  }
  Lines lines(data->job(), flags.nan_for_bad_rows);
  const auto take = [&](const Batch& batch, std::span<const float> scores) {
    HDPS_ASSIGN_OR_RETURN(const std::string text, lines.Of(batch, scores));
    if (file != nullptr) return file->Append(std::as_bytes(std::span(text)));
    to << text;
    return to.good() ? Status() : Status(Code::kIoError, "cannot write the predictions");
  };
  HDPS_ASSIGN_OR_RETURN(const ScoreSums sums, data->Score(rows, take));
  if (file != nullptr) HDPS_RETURN_IF_ERROR(file->Close());
  if (sums.labels.unknown_ids > 0) {
    PrintError("%llu ids from their vocab_size on read as zeros\n",
               static_cast<unsigned long long>(sums.labels.unknown_ids));
  }
  if (const std::string unknown = data->UnknownKeysTold(); !unknown.empty()) {
    PrintError("%s\n", unknown.c_str());
  }
  if (lines.rows_without() > 0) {
    PrintError("nan in %llu of %llu lines: these rows cannot be scored\n",
               static_cast<unsigned long long>(lines.rows_without()),
               static_cast<unsigned long long>(sums.examples));
  }
  return Status();
}

}  // namespace hdps
