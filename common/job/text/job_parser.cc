// From a job file to a checked Job.
#include <memory>
#include <utility>

#include "common/job/job_registry.h"
#include "common/job/text/job_sections.h"

namespace hdps {

namespace {

constexpr uint64_t kJobBytesMax = 16u << 20;

// The modes of MindSpore that people may bring with them.
constexpr const char* kForeignModes[] = {"hybrid_parallel", "semi_auto_parallel", "auto_parallel"};

// Accepts the spellings that are in use elsewhere, and answers those that have no meaning here.
Status Normalise(JobSource* source) {
  JsonValue* parallel = source->root.Find("parallel");
  if (parallel == nullptr) return {};
  for (const char* key : {"parallel_mode", "dataset_strategy"}) {
    JsonValue* value = parallel->Find(key);
    if (value != nullptr && value->text == "data_paralel") value->text = "data_parallel";
  }
  if (const JsonValue* mode = parallel->Find("parallel_mode")) {
    for (const char* foreign : kForeignModes) {
      if (mode->text != foreign) continue;
      return Refuse(*source, "parallel.parallel_mode",
                    "\"" + mode->text + "\" is not built: use data_parallel");
    }
  }
  const JsonValue* strategy = parallel->Find("dataset_strategy");
  const JsonValue* full_batch = parallel->Find("full_batch");
  if (strategy != nullptr && full_batch != nullptr && full_batch->kind == JsonValue::Kind::kBool &&
      (strategy->text == "full_batch") != full_batch->boolean) {
    return Refuse(*source, "parallel.full_batch",
                  PrintJsonLine(*full_batch) + " contradicts dataset_strategy = " +
                      PrintJsonLine(*strategy) + "; give one of them");
  }
  return {};
}

Result<Job> ReadJob(const std::string& json, const std::vector<std::string>& overrides,
                    const JobRegistry& registry, JobSource* source) {
  HDPS_ASSIGN_OR_RETURN(source->root, ParseJson(json, source->origin));
  for (const std::string& text : overrides) HDPS_RETURN_IF_ERROR(ApplyOverride(text, source));
  HDPS_RETURN_IF_ERROR(Normalise(source));
  if (source->root.kind != JsonValue::Kind::kObject) {
    return Refuse(*source, "", "a job is an object, {\"data\": {...}, \"model\": {...}}");
  }
  const Section section = JobSection(registry);
  HDPS_RETURN_IF_ERROR(CheckSection(*source, section, source->root, ""));
  JobText text;
  if (&registry != &BuiltInRegistry()) {
    text.model_text.registry = std::make_shared<JobRegistry>(registry);
  }
  std::vector<std::string> warnings;
  ReadSection(section, source->root, &text, {"", &warnings});
  Job job = text;
  job.warnings = std::move(warnings);
  HDPS_RETURN_IF_ERROR(CheckJob(*source, text.model_text, &job));
  return job;
}

// Replaces each path by where it was found.
Status FindData(FileSystem& files, const JobSource& source, const std::string& key,
                DataFiles needed, std::vector<std::string>* paths) {
  const size_t slash = source.origin.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : source.origin.substr(0, slash + 1);
  for (size_t i = 0; i < paths->size(); ++i) {
    std::string& path = (*paths)[i];
    const std::string beside = JoinPath(folder, path);
    if (files.Exists(beside)) {
      path = beside;
    } else if (needed == DataFiles::kMustExist && !files.Exists(path)) {
      std::string sought = beside == path ? path : beside + " and " + path;
      return Refuse(source, "data." + key + "." + std::to_string(i),
                    "there is no such file; looked for " + sought);
    }
  }
  return {};
}

}  // namespace

Result<Job> ParseJob(const std::string& json, const std::string& origin,
                     const std::vector<std::string>& overrides, const JobRegistry& registry) {
  JobSource source{origin, {}};
  return ReadJob(json, overrides, registry, &source);
}

Result<Job> LoadJob(FileSystem& files, const std::string& path,
                    const std::vector<std::string>& overrides, DataFiles needed,
                    const JobRegistry& registry) {
  Result<std::string> text = ReadWholeFile(files, path, kJobBytesMax);
  if (!text.ok()) {
    return Status(Code::kInvalidArgument,
                  text.status().message() + "; --job has to name a job file");
  }
  JobSource source{path, {}};
  HDPS_ASSIGN_OR_RETURN(Job job, ReadJob(*text, overrides, registry, &source));
  HDPS_RETURN_IF_ERROR(FindData(files, source, "train", needed, &job.data.train));
  HDPS_RETURN_IF_ERROR(FindData(files, source, "eval", needed, &job.data.eval));
  for (size_t s = 0; s < job.data.eval_sets.size(); ++s) {
    HDPS_RETURN_IF_ERROR(FindData(files, source, "eval_sets." + std::to_string(s) + ".files",
                                  needed, &job.data.eval_sets[s].files));
  }
  return job;
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
