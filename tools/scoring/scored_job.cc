// Looks for each beside the job, then beside the checkpoint, and says where it looked.
#include "tools/scoring/scored_job.h"

#include <filesystem>
#include <utility>
#include <vector>

#include "common/base/nearest_name.h"
#include "common/job/data_paths.h"
#include "common/job/job_differences.h"
#include "common/job/job_file.h"
#include "common/job/job_registry.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/vocabulary.h"
#include "tools/inputs/file_names.h"
#include "tools/scoring/checkpoint_model.h"

namespace hdps {
namespace {

// Returns where the job file names the files of a set.
std::string PlaceOf(const EvalSet& set, const DataSpec& data) {
  if (set.held_out) return "data.train.";
  for (size_t s = 0; s < data.eval_sets.size(); ++s) {
    if (data.eval_sets[s].name == set.name) {
      return "data.eval_sets." + std::to_string(s) + ".files.";
    }
  }
  return "data.eval.";
}

// Returns the set that the flags name, or the first of the job.
Result<EvalSet> SetOf(const CommonFlags& flags, const Job& job) {
  const std::vector<EvalSet> sets = EvalSetsOf(job.data);
  if (flags.eval_set.empty() && !sets.empty()) return sets.front();
  if (flags.eval_set.empty()) {
    return Status(Code::kInvalidArgument,
                  "--data is missing and the job's data.eval is empty; give files to score, "
                  "--data=FILE,...");
  }
  std::vector<std::string> names;
  std::string list;
  for (const EvalSet& set : sets) {
    if (set.name == flags.eval_set) return set;
    names.push_back(set.name);
    list += (list.empty() ? "; its sets are " : ", ") + set.name;
  }
  return Status(Code::kInvalidArgument,
                "--eval_set=" + flags.eval_set + ": the job has no such evaluation set" +
                    DidYouMean(flags.eval_set, names) + (list.empty() ? "; it has none" : list));
}

// Ignores settings that a job may change between steps, such as the learning rate: they do not
// affect scores.
Status CheckIsOf(const Job& job, const FoundCheckpoint& found) {
  const Manifest& manifest = found.manifest;
  if (TablesFit(job, manifest.job_json, manifest.tables_digest)) return {};
  const auto differences = DifferencesFrom(job, manifest.job_json, JobPart::kTables);
  // The job is the checkpoint's own, as hdps serve takes it, or is equal to that.
  if (differences.ok() && differences->empty()) {
    return {Code::kInvalidArgument,
            found.folder + ": the tables of the checkpoint are not those of the job in its " +
                kManifestName + ", so one of them was changed; give another checkpoint"};
  }
  return {Code::kInvalidArgument,
          "--checkpoint: " + found.folder + " was written by another job ('" + manifest.job_name +
              "'), " +
              (differences.ok()
                   ? "with other settings: " + TellDifferences(*differences)
                   : "whose model, tables, rules, shards or seed differ from those of --job") +
              "; give the job file it was trained with, or the checkpoint of this job"};
}

// Cuts the tables of `job` over the shards as those of the checkpoint are: rows are read where they
// were saved.
Status TakeCut(const Manifest& manifest, Job* job) {
  if (TablesDigest(*job) == manifest.tables_digest) return {};
  HDPS_ASSIGN_OR_RETURN(const Job saved,
                        ParseJob(manifest.job_json, manifest.job_name, {}, RegistryOf(job->model)));
  for (size_t t = 0; t < job->tables.size(); ++t) {
    TableSpec& table = job->tables[t];
    table.slice_mode = saved.tables[t].slice_mode;
    table.manual_shapes = saved.tables[t].manual_shapes;
    table.column_slices = saved.tables[t].column_slices;
    table.shard_by = saved.tables[t].shard_by;
  }
  return {};
}

}  // namespace

Result<ReadJob> JobOf(const CommonFlags& flags, FileSystem& files, const FoundCheckpoint* found) {
  ReadJob read;
  if (!flags.job.empty()) {
    read.origin = flags.job;
    // Only the files to score have to exist.
    HDPS_ASSIGN_OR_RETURN(read.job,
                          LoadJob(files, flags.job, flags.overrides, DataFiles::kNotNeeded));
    return read;
  }
  FoundCheckpoint opened;
  if (found == nullptr) {
    HDPS_ASSIGN_OR_RETURN(opened, OpenNamedCheckpoint(files, flags.checkpoint, flags.which));
    found = &opened;
  }
  read.origin = JoinPath(found->folder, kManifestName);
  HDPS_ASSIGN_OR_RETURN(read.job,
                        ParseJob(found->manifest.job_json, found->folder, flags.overrides));
  return read;
}

Result<EvalSet> FindData(const CommonFlags& flags, const ReadJob& read, FileSystem& files) {
  const std::vector<std::string> named = SplitFileList(files, flags.data);
  const bool given = !named.empty();
  if (given && !flags.eval_set.empty()) {
    return Status(Code::kInvalidArgument,
                  "--eval_set=" + flags.eval_set + " contradicts --data; give one of them");
  }
  EvalSet found{.name = "", .files = named};
  if (!given) {
    HDPS_ASSIGN_OR_RETURN(found, SetOf(flags, read.job));
  }
  const std::vector<std::string> paths = std::exchange(found.files, {});
  for (size_t i = 0; i < paths.size(); ++i) {
    HDPS_ASSIGN_OR_RETURN(const std::vector<std::string> here, FilesOf(files, paths[i]));
    found.files.insert(found.files.end(), here.begin(), here.end());
    if (!here.empty()) continue;
    const std::string sought = std::filesystem::absolute(paths[i]).lexically_normal().string();
    if (given) {
      return Status(Code::kInvalidArgument, "--data: there is no file " + sought);
    }
    const std::string place =
        read.origin + ": " + PlaceOf(found, read.job.data) + std::to_string(i) + ": ";
    if (flags.job.empty()) {
      return Status(Code::kInvalidArgument,
                    place + "the job was trained with \"" + paths[i] + "\", and there is no file " +
                        sought +
                        "; give --job=FILE, beside which its data is sought too, or --data=FILE");
    }
    const std::string beside =
        (std::filesystem::absolute(flags.job).parent_path() / paths[i]).lexically_normal();
    return Status(Code::kInvalidArgument, place + "there is no such file; looked for " + beside +
                                              (beside == sought ? "" : " and " + sought) +
                                              "; give the files with --data=FILE,...");
  }
  return found;
}

Status LoadVocabularyOf(const std::string& origin, const FoundCheckpoint& checkpoint,
                        FileSystem& files, DataSpec* data) {
  if (data->vocabulary.file.empty()) return {};
  for (const CheckpointPart& part : checkpoint.chain) {
    const std::string copy = JoinPath(part.folder, kVocabularyName);
    if (files.Exists(copy)) data->vocabulary.file = copy;
  }
  const Status loaded = LoadVocabulary(files, data);
  if (loaded.ok()) return loaded;
  return {Code::kInvalidArgument, origin + ": data.vocabulary.file: " + loaded.message() + "; " +
                                      kVocabularyName + " lies in full checkpoints and beside " +
                                      "the prepared job, --set=data.vocabulary.file=FILE"};
}

Status FitToCheckpoint(const FoundCheckpoint& found, Job* job) {
  HDPS_RETURN_IF_ERROR(CheckIsOf(*job, found));
  return TakeCut(found.manifest, job);
}

}  // namespace hdps
