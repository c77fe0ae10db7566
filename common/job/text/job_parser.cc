// Parses a job file to a checked Job.
#include <algorithm>
#include <iterator>
#include <memory>
#include <set>
#include <utility>

#include "common/job/data_paths.h"
#include "common/job/given_job.h"
#include "common/job/job_facts.h"
#include "common/job/job_file.h"
#include "common/job/job_registry.h"
#include "common/job/kafka/kafka_entry.h"
#include "common/job/spec/checkpoint_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/job/strategy/strategy_file.h"
#include "common/job/text/job_sections.h"
#include "common/job/text/job_text.h"
#include "common/job/vocabulary.h"
#include "common/job/words/mindspore_words.h"

namespace hdps {

namespace {

constexpr uint64_t kJobBytesMax = 16u << 20;

// Checks settings of "parallel" that have two spellings.
Status CheckSpellings(const JobSource& source) {
  const JsonValue* parallel = source.root.Find("parallel");
  if (parallel == nullptr) return {};
  const JsonValue* search = parallel->Find("search_mode");
  const JsonValue* same = parallel->Find("auto_parallel_search_mode");
  if (search != nullptr && same != nullptr && search->text != same->text) {
    return Refuse(source, "parallel.auto_parallel_search_mode",
                  PrintJsonLine(*same) + " contradicts search_mode = " + PrintJsonLine(*search) +
                      "; they are one setting, give one of them");
  }
  const JsonValue* strategy = parallel->Find("dataset_strategy");
  const JsonValue* full_batch = parallel->Find("full_batch");
  if (strategy != nullptr && full_batch != nullptr && full_batch->kind == JsonValue::Kind::kBool &&
      (strategy->text == "full_batch") != full_batch->boolean) {
    return Refuse(source, "parallel.full_batch",
                  PrintJsonLine(*full_batch) + " contradicts dataset_strategy = " +
                      PrintJsonLine(*strategy) + "; give one of them");
  }
  return {};
}

Result<Job> ReadJob(const std::string& json, const std::vector<std::string>& overrides,
                    const JobRegistry& registry, JobSource* source) {
  HDPS_ASSIGN_OR_RETURN(source->root, ParseJson(json, source->origin));
  for (const std::string& text : overrides) HDPS_RETURN_IF_ERROR(ApplyOverride(text, source));
  if (source->root.kind != JsonValue::Kind::kObject) {
    return Refuse(*source, "", "a job is an object, {\"data\": {...}, \"model\": {...}}");
  }
  const Section section = JobSection(registry);
  TakeForeignWords(section, &source->root);
  HDPS_RETURN_IF_ERROR(CheckSpellings(*source));
  HDPS_RETURN_IF_ERROR(CheckSection(*source, section, source->root, ""));
  JobText text;
  if (&registry != &BuiltInRegistry()) {
    text.model_text.registry = std::make_shared<JobRegistry>(registry);
  }
  std::vector<std::string> warnings;
  LeaveOutOfTablesJob(section, &source->root, &warnings);
  ReadSection(section, source->root, &text, {"", &warnings});
  if (text.model_text.type != kTablesType && source->root.Find("data") == nullptr) {
    return Refuse(*source, "data", "it is missing; see docs/job_file.md");
  }
  Job job;
  job.name = text.name;
  job.seed = text.seed;
  job.data = text.data;
  job.train = text.train_text;
  job.parallel = text.parallel;
  job.checkpoint = text.checkpoint;
  job.cluster = text.cluster;
  job.warnings = std::move(warnings);
  HDPS_RETURN_IF_ERROR(CheckJob(*source, text, &job));
  return job;
}

// The error for a path of the job at which nothing exists. `beside` and `path` were searched.
Status RefusePath(FileSystem& files, const JobSource& source, const std::string& place,
                  const std::string& beside, const std::string& path) {
  const std::string sought = beside == path ? path : beside + " and " + path;
  for (const std::string& folder : {beside, path}) {
    if (!files.Exists(folder)) continue;
    return Refuse(source, place,
                  "there is no file in the folder " + folder +
                      " whose name begins with neither \".\" nor \"_\"");
  }
  return Refuse(
      source, place,
      (IsPattern(path) ? "no file matches; looked for " : "there is no such file; looked for ") +
          sought);
}

std::string FolderOf(const JobSource& source) {
  const size_t slash = source.origin.rfind('/');
  return slash == std::string::npos ? "" : source.origin.substr(0, slash + 1);
}

// Returns `path` taken from the folder of the job file if there is something, else as it is.
std::string Found(FileSystem& files, const JobSource& source, const std::string& path) {
  const std::string beside = JoinPath(FolderOf(source), path);
  return files.Exists(beside) ? beside : path;
}

// Replaces each path by where it was found, and folders and patterns by their files.
Status FindData(FileSystem& files, const JobSource& source, const std::string& key,
                DataFiles needed, std::vector<std::string>* paths) {
  const std::string folder = FolderOf(source);
  if (std::ranges::any_of(*paths, NamesTopic)) return {};
  std::vector<std::string> found;
  for (size_t i = 0; i < paths->size(); ++i) {
    const std::string& path = (*paths)[i];
    const std::string beside = JoinPath(folder, path);
    HDPS_ASSIGN_OR_RETURN(std::vector<std::string> files_here, FilesOf(files, beside));
    if (files_here.empty() && beside != path) {
      HDPS_ASSIGN_OR_RETURN(files_here, FilesOf(files, path));
    }
    if (files_here.empty()) {
      // Whether there is such a table is seen where rows are read.
      if (needed == DataFiles::kMustExist && !NamesTable(path)) {
        return RefusePath(files, source, "data." + key + "." + std::to_string(i), beside, path);
      }
      files_here = {path};
    }
    std::ranges::move(files_here, std::back_inserter(found));
  }
  *paths = std::move(found);
  return {};
}

// Replaces the path of data that is followed by where it was found; a folder may still be empty.
Status FindFollowed(FileSystem& files, const JobSource& source, DataFiles needed,
                    std::string* path) {
  const std::string beside = JoinPath(FolderOf(source), *path);
  for (const std::string& at : {beside, *path}) {
    HDPS_ASSIGN_OR_RETURN(const std::vector<std::string> here, FilesOf(files, at));
    if (!files.Exists(at) && here.empty()) continue;
    *path = at;
    return {};
  }
  if (needed != DataFiles::kMustExist) return {};
  return RefusePath(files, source, "data.train.0", beside, *path);
}

// Reads the files that the job names for its strategy, first beside the job file.
Status ReadStrategyParts(FileSystem& files, const JobSource& source, ParallelSpec* parallel) {
  if (!parallel->strategy_load_file.empty()) {
    const std::string& path = parallel->strategy_load_file;
    const std::string beside = StrategyFileAt(files, JoinPath(FolderOf(source), path));
    auto kept = ReadStrategyFile(files, files.Exists(beside) ? beside : path);
    if (!kept.ok()) {
      return Refuse(source, "parallel.strategy_ckpt_load_file", kept.status().message());
    }
    parallel->kept_strategy = *std::move(kept);
  }
  if (!parallel->constants_file.empty()) {
    const auto rates = ReadStepRates(files, Found(files, source, parallel->constants_file));
    if (!rates.ok()) return Refuse(source, "parallel.constants", rates.status().message());
    parallel->rates = *rates;
  }
  return {};
}

// Places the folder of kept rows beside the job file, unless there is one at the path itself.
std::string CacheFolder(FileSystem& files, const JobSource& source, const std::string& path) {
  if (path.empty() || path.starts_with('/')) return path;
  const std::string beside = JoinPath(FolderOf(source), path);
  return files.Exists(path) && !files.Exists(beside) ? path : beside;
}

// Finds the vocabulary, first beside the job file, and reads it if the process reads the data.
Status FindVocabulary(FileSystem& files, const JobSource& source, DataFiles needed,
                      DataSpec* data) {
  if (data->vocabulary.file.empty()) return {};
  data->vocabulary.file = Found(files, source, data->vocabulary.file);
  if (needed == DataFiles::kNotNeeded) return {};
  const Status loaded = LoadVocabulary(files, data);
  return loaded.ok() ? loaded : Refuse(source, "data.vocabulary.file", loaded.message());
}

// Warns of files that are read twice or are both trained and evaluated on, which happens easily
// with patterns and folders.
void WarnOfRepeats(Job* job) {
  const auto warn = [job](const std::vector<std::string>& paths, const std::string& what) {
    if (paths.empty()) return;
    job->warnings.push_back(
        what + ": " + paths[0] +
        (paths.size() == 1 ? "" : " and " + std::to_string(paths.size() - 1) + " more"));
  };
  std::set<std::string> trained;
  std::vector<std::string> twice, both;
  for (const std::string& path : job->data.train) {
    if (!trained.insert(path).second) twice.push_back(path);
  }
  for (const std::string& path : job->data.eval) {
    if (trained.contains(path)) both.push_back(path);
  }
  warn(twice, "data.train has files more than once, and trains on them as often");
  warn(both, "data.eval has files that are trained on too");
}

// Reads the job, and finds its files.
Result<Job> LoadText(FileSystem& files, const WrittenJob& text,
                     const std::vector<std::string>& overrides, DataFiles needed,
                     const JobRegistry& registry) {
  JobSource source{text.origin, {}};
  HDPS_ASSIGN_OR_RETURN(Job job, ReadJob(text.text, overrides, registry, &source));
  HDPS_RETURN_IF_ERROR(job.data.follow ? FindFollowed(files, source, needed, &job.data.train[0])
                                       : FindData(files, source, "train", needed, &job.data.train));
  HDPS_RETURN_IF_ERROR(FindData(files, source, "eval", needed, &job.data.eval));
  for (size_t s = 0; s < job.data.eval_sets.size(); ++s) {
    HDPS_RETURN_IF_ERROR(FindData(files, source, "eval_sets." + std::to_string(s) + ".files",
                                  needed, &job.data.eval_sets[s].files));
  }
  HDPS_RETURN_IF_ERROR(FindVocabulary(files, source, needed, &job.data));
  if (!job.data.kafka.secrets.empty()) {
    job.data.kafka.secrets = Found(files, source, job.data.kafka.secrets);
  }
  job.data.cache_path = CacheFolder(files, source, job.data.cache_path);
  HDPS_RETURN_IF_ERROR(ReadStrategyParts(files, source, &job.parallel));
  WarnOfRepeats(&job);
  return job;
}

}  // namespace

Result<Job> ParseJob(const std::string& json, const std::string& origin,
                     const std::vector<std::string>& overrides, const JobRegistry& registry) {
  JobSource source{origin, {}};
  return ReadJob(json, overrides, registry, &source);
}

Result<WrittenJob> ReadWrittenJob(FileSystem& files, const std::string& path) {
  Result<std::string> text = ReadWholeFile(files, path, kJobBytesMax);
  if (text.ok()) return WrittenJob{path, *std::move(text)};
  return Status(Code::kInvalidArgument, text.status().message() + "; --job has to name a job file");
}

Result<Job> LoadJob(FileSystem& files, const WrittenJob& text,
                    const std::vector<std::string>& overrides, DataFiles needed) {
  return LoadText(files, text, overrides, needed, BuiltInRegistry());
}

Result<Job> LoadJob(FileSystem& files, const std::string& path,
                    const std::vector<std::string>& overrides, DataFiles needed,
                    const JobRegistry& registry) {
  HDPS_ASSIGN_OR_RETURN(const WrittenJob text, ReadWrittenJob(files, path));
  return LoadText(files, text, overrides, needed, registry);
}

Result<Job> ParseJob(const std::string& json, const std::string& origin,
                     const std::vector<std::string>& overrides) {
  return ParseJob(json, origin, overrides, BuiltInRegistry());
}

Result<Job> LoadJob(FileSystem& files, const std::string& path,
                    const std::vector<std::string>& overrides, DataFiles needed) {
  return LoadJob(files, path, overrides, needed, BuiltInRegistry());
}

std::vector<std::string> SplitOverrides(const std::string& text) {
  std::vector<std::string> parts;
  std::string part;
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ',' && depth <= 0 && !quoted) {
      parts.push_back(std::exchange(part, ""));
      continue;
    }
    part += c;
    if (c == '\\' && quoted && i + 1 < text.size()) part += text[++i];
    if (c == '"') quoted = !quoted;
    if (!quoted && (c == '[' || c == '{')) ++depth;
    if (!quoted && (c == ']' || c == '}')) --depth;
  }
  if (!part.empty() || !parts.empty()) parts.push_back(part);
  return parts;
}

}  // namespace hdps
