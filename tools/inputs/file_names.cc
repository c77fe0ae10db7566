// Splits lists of files, and lists the files of a job.
#include "tools/inputs/file_names.h"

#include <algorithm>

#include "common/job/eval_sets.h"
#include "common/job/job_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/strategy/strategy_file.h"

namespace hdps {

std::vector<std::string> SplitFileList(FileSystem& files, const std::string& text) {
  if (!text.empty() && files.Exists(text)) return {text};
  std::vector<std::string> parts;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find(',', begin), text.size());
    std::string part = text.substr(begin, end - begin);
    const size_t close = text[begin] == '"' ? text.find('"', begin + 1) : std::string::npos;
    if (close != std::string::npos && (close + 1 == text.size() || text[close + 1] == ',')) {
      part = text.substr(begin + 1, close - begin - 1);
      end = close + 1;
    }
    if (!part.empty()) parts.push_back(part);
    begin = end + 1;
  }
  return parts;
}

std::vector<InputFile> InputsOf(const std::string& job_file, const Job& job) {
  std::vector<InputFile> inputs;
  if (!job_file.empty()) inputs.push_back({"the job file", job_file});
  for (const std::string& path : job.data.train) inputs.push_back({"a file of data.train", path});
  for (const EvalSet& set : EvalSetsOf(job.data)) {
    for (const std::string& path : set.files) {
      inputs.push_back({"a file of the evaluation set '" + set.name + "'", path});
    }
  }
  if (!job.data.vocabulary.file.empty()) {
    inputs.push_back({"the vocabulary of the job", job.data.vocabulary.file});
  }
  if (job.parallel.kept_strategy) {
    inputs.push_back({"the strategy that the job loads", job.parallel.kept_strategy->path});
  }
  return inputs;
}

Status RefuseSavedStrategy(FileSystem& files, const std::string& job_file, const Job& job) {
  Job without = job;
  without.parallel.kept_strategy.reset();
  const std::string path = StrategyFileAt(files, job.parallel.strategy_save_file);
  return RefuseInput(files, "parallel.strategy_ckpt_save_file: " + path, path,
                     InputsOf(job_file, without));
}

}  // namespace hdps
