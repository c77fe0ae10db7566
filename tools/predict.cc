// hdps predict: one line of probabilities a row.
#include <cstdio>
#include <memory>
#include <string>

#include "tools/scored_data.h"

namespace hdps {
namespace {

// %.9g tells every float apart.
std::string Lines(std::span<const float> scores, size_t rows) {
  std::string text;
  const size_t per_row = rows == 0 ? 1 : scores.size() / rows;
  for (size_t i = 0; i < scores.size(); ++i) {
    char number[32];
    std::snprintf(number, sizeof(number), "%.9g", static_cast<double>(scores[i]));
    text += number;
    text += (i + 1) % per_row == 0 ? '\n' : ' ';
  }
  return text;
}

}  // namespace

Status RunPredict(const CommonFlags& flags, FileSystem& files, Executor& executor,
                  std::ostream& to) {
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<ScoredData> data,
                        ScoredData::Open(flags, files, executor));
  if (flags.dry_run) {
    to << data->WhoHoldsWhat();
    return Status();
  }
  std::unique_ptr<WritableFile> file;
  if (!flags.out.empty()) {
    HDPS_ASSIGN_OR_RETURN(file, files.Create(flags.out));
  }
  const auto take = [&](const Batch& batch, std::span<const float> scores) {
    const std::string lines = Lines(scores, batch.num_examples);
    if (file != nullptr) return file->Append(std::as_bytes(std::span(lines)));
    to << lines;
    return to.good() ? Status() : Status(Code::kIoError, "cannot write the predictions");
  };
  HDPS_RETURN_IF_ERROR(data->Score(/*labels=*/false, take).status());
  return file == nullptr ? Status() : file->Close();
}

}  // namespace hdps
