// Implements hdps predict: a line of scores per row.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "common/platform/output_file.h"
#include "common/process/terminal.h"
#include "tools/scoring/predictions.h"
#include "tools/scoring/scored_data.h"

namespace hdps {
namespace {

// Writes the predictions of a batch as lines; several threads may call it at once.
class Lines {
 public:
  Lines(const Job& job, bool nan_for_bad_rows) : nan_(nan_for_bad_rows), predictions_(job) {}

  // Returns kInvalidArgument for a score that is not a number, unless such lines were requested.
  Status Write(ScoredBatch* scored) const {
    const Batch& batch = scored->batch;
    predictions_.Convert(scored->scores);
    const size_t per_row = scored->scores.size() / batch.num_examples;
    std::string& text = scored->lines;
    text.reserve(scored->scores.size() * kNumberBytes);
    for (uint32_t row = 0; row < batch.num_examples; ++row) {
      const std::span<const float> of_row =
          std::span(scored->scores).subspan(row * per_row, per_row);
      bool none = nan_ && batch.weights[row] == 0;  // A bad row, under BadRows::kKept.
      if (!none && std::ranges::any_of(of_row, [](float score) { return std::isnan(score); })) {
        none = true;
        if (!nan_) return NotANumber(batch.first_row + row + 1);
      }
      if (none) ++scored->rows_without;
      for (size_t i = 0; i < per_row; ++i) {
        if (none) {
          text += "nan";
        } else {
          AppendNumber(of_row[i], &text);
        }
        text += i + 1 == per_row ? '\n' : ' ';
      }
    }
    return {};
  }

 private:
  static constexpr size_t kNumberBytes = 16;  // Of most numbers, with what ends them.

  // 9 digits distinguish all floats.
  static void AppendNumber(float prediction, std::string* text) {
    constexpr int kDigits = 9;
    char number[32];
    const auto end = std::to_chars(number, number + sizeof(number), static_cast<double>(prediction),
                                   std::chars_format::general, kDigits);
    text->append(number, end.ptr);
  }
  static Status NotANumber(uint64_t row) {
    return {Code::kInvalidArgument,
            ScoreNotANumber(row) + " (--bad_rows=nan gives nan in the line of such a row)"};
  }

  const bool nan_;
  const Predictions predictions_;
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
    return data->Score(rows, [](const ScoredBatch&) { return Status(); }).status();
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
  const Lines lines(data->job(), flags.nan_for_bad_rows);
  uint64_t rows_without = 0;
  const auto take = [&](const ScoredBatch& scored) {
    rows_without += scored.rows_without;
    if (file != nullptr) return file->Append(std::as_bytes(std::span(scored.lines)));
    to << scored.lines;
    return to.good() ? Status() : Status(Code::kIoError, "cannot write the predictions");
  };
  const auto shape = [&](ScoredBatch* scored) { return lines.Write(scored); };
  HDPS_ASSIGN_OR_RETURN(const ScoreSums sums, data->Score(rows, take, shape));
  if (file != nullptr) HDPS_RETURN_IF_ERROR(file->Close());
  if (sums.labels.unknown_ids > 0) {
    PrintError("%llu ids from their vocab_size on read as zeros\n",
               static_cast<unsigned long long>(sums.labels.unknown_ids));
  }
  if (const std::string unknown = data->UnknownKeysTold(); !unknown.empty()) {
    PrintError("%s\n", unknown.c_str());
  }
  if (rows_without > 0) {
    PrintError("nan in %llu of %llu lines: these rows cannot be scored\n",
               static_cast<unsigned long long>(rows_without),
               static_cast<unsigned long long>(sums.examples));
  }
  return Status();
}

}  // namespace hdps
