// Implements the making of a job: arguments, profile, plan, files.
#include "tools/prepare/prepare_files.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <utility>

#include "common/base/nearest_name.h"
#include "common/job/data_paths.h"
#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/job/recipes/recipe_record.h"
#include "common/job/spec/data_spec.h"
#include "common/job/vocabulary.h"
#include "tools/inputs/file_names.h"
#include "tools/prepare/columns/label_column.h"
#include "tools/prepare/layout/foreign_file.h"
#include "tools/prepare/layout/table_layout.h"
#include "tools/prepare/prepare_report.h"
#include "worker/data/data_preview.h"
#include "worker/data/held_out/share_look.h"

namespace hdps {
namespace {

// Takes the first share that is large enough.
constexpr double kValidationShares[] = {0.1, 0.2, 0.3};

Status Mistaken(const std::string& message) { return {Code::kInvalidArgument, message}; }

// Lines of a block under --split=blocks: a record of MindSpore's model zoo has so many.
constexpr uint64_t kBlockLines = 1000;

Result<std::vector<std::string>> AllFiles(FileSystem& files, const std::vector<std::string>& paths,
                                          const std::string& where) {
  std::vector<std::string> found;
  for (const std::string& path : paths) {
    HDPS_ASSIGN_OR_RETURN(const std::vector<std::string> here, FilesOf(files, path));
    if (here.empty()) return Mistaken(where + path + ": there is no such file");
    for (const std::string& file : here) {
      found.push_back(std::filesystem::absolute(file).lexically_normal().string());
    }
  }
  return found;
}

Result<std::optional<TaskKind>> ReadTask(const std::string& task) {
  if (task.empty()) return std::optional<TaskKind>();
  std::vector<std::string> known;
  for (const auto& word : WordsOf(TaskKind{})) {
    if (word.word == task) return std::optional(word.value);
    known.emplace_back(word.word);
  }
  return Mistaken("--task=" + task + ": expected binary, classes, rating or ranking" +
                  DidYouMean(task, known));
}

// Reads --split, after the files.
Status ReadSplit(const std::string& split, JobWish* wish) {
  if (split == "rows") return {};
  const std::string given = "--split=" + split + ": ";
  if (split != "blocks") {
    return Mistaken(given + "expected rows or blocks" + DidYouMean(split, {"rows", "blocks"}));
  }
  if (!wish->eval.empty()) {
    return Mistaken(given + "no rows are held out, since there are files to evaluate on, " +
                    wish->eval[0] + ": expected one of the two");
  }
  wish->validation_block_lines = kBlockLines;
  return {};
}

// Checks the arguments, and returns what the job is to have.
Result<JobWish> ReadWish(FileSystem& files, const PrepareRequest& request) {
  if (request.files.empty()) {
    return Mistaken("no file is named: expected hdps prepare FILE... --out=DIR");
  }
  if (request.out.empty()) return Mistaken("--out is missing: expected --out=DIR to write into");
  if (files.Exists(JoinPath(request.out, "job.json"))) {
    return Mistaken("--out=" + request.out +
                    ": there is a job.json already, and it is left as it is: "
                    "expected another folder, or that file removed");
  }
  JobWish wish;
  std::vector<std::string> models;
  for (const RecipeRecord& recipe : Recipes()) models.push_back(recipe.word);
  wish.model = request.model;
  wish.keeps_rows = request.cache;
  if (!wish.model.empty() && std::ranges::find(models, wish.model) == models.end()) {
    return Mistaken("--model=" + wish.model + ": expected a model of docs/models.md, such as " +
                    "wide_deep, deepfm or dcn_v2" + DidYouMean(wish.model, models));
  }
  HDPS_ASSIGN_OR_RETURN(wish.train, AllFiles(files, request.files, ""));
  HDPS_ASSIGN_OR_RETURN(wish.eval, AllFiles(files, request.eval, "--eval="));
  for (const std::string& path : wish.eval) {
    if (std::ranges::find(wish.train, path) != wish.train.end()) {
      return Mistaken("--eval=" + path +
                      ": it is one of the files to train on too: expected others");
    }
  }
  if (wish.eval.empty() && wish.train.size() > 1) {
    wish.eval = {wish.train.back()};
    wish.train.pop_back();
  }
  if (request.min_count < 0) {
    return Mistaken("--min_count=" + std::to_string(request.min_count) +
                    ": expected a number from 0 on");
  }
  HDPS_RETURN_IF_ERROR(ReadSplit(request.split, &wish));
  wish.name = std::filesystem::path(wish.train[0]).filename().replace_extension().string();
  return wish;
}

// Reads an evaluation file without the header of the training files, whose columns are in the same
// order: the job then reads all columns by position, and skips the header as a comment.
Status ReadByPlace(FileSystem& files, const std::string& path, size_t cells, const JobWish& wish,
                   DataProfile* train) {
  DataLayout& layout = train->layout;
  const Status refused = Mistaken(path + ":1: this file has no header, and " + train->files[0] +
                                  " has one: expected the same in all files of a job");
  if (!layout.comment.empty() || cells != layout.names.size()) return refused;
  for (const std::string& file : wish.train) {
    HDPS_ASSIGN_OR_RETURN(const DataLayout there, TellLayout(files, file));
    if (there.header_line != layout.header_line) return refused;
  }
  layout.header = false;
  layout.comment = layout.header_line;
  return {};
}

// Profiles the label in the evaluation files. Requires that they have the layout of the training
// files.
Result<DataProfile> ProfileEval(FileSystem& files, const JobWish& wish, const DataWish& data,
                                DataProfile* train, std::vector<std::string>* notes) {
  for (const std::string& path : wish.eval) {
    HDPS_ASSIGN_OR_RETURN(const DataLayout there, TellLayout(files, path));
    if (there.header == train->layout.header) continue;
    if (there.header && train->layout.comment == there.header_line) continue;
    if (there.header) {
      return Mistaken(path + ":1: this file has a header, and " + train->files[0] +
                      " has none: expected the same in all files of a job");
    }
    HDPS_RETURN_IF_ERROR(ReadByPlace(files, path, there.names.size(), wish, train));
    notes->push_back(path + " has no header: its columns are taken in the order of " +
                     train->files[0] + "; the header there is passed over as a comment");
  }
  HDPS_ASSIGN_OR_RETURN(const size_t label, FindLabel(*train, data));
  ProfileOptions options;
  options.only = label == kNoColumn ? "" : train->columns[label].name;
  return ProfileData(files, train->layout, wish.eval, options);
}

// Returns a path for the job file: relative to its folder if both are in one tree, so that the tree
// can be moved; otherwise unchanged.
std::string FromFolder(const std::string& folder, const std::string& path) {
  constexpr std::string_view kUp = "..";
  constexpr std::ptrdiff_t kUpMax = 2;
  const std::filesystem::path from =
      std::filesystem::weakly_canonical(std::filesystem::absolute(folder));
  const std::filesystem::path file(path);  // A link is kept as a link.
  const std::filesystem::path relative =
      (std::filesystem::weakly_canonical(file.parent_path()) / file.filename())
          .lexically_relative(from);
  const auto ups = std::ranges::count(relative, std::filesystem::path(kUp));
  // Number of folders below the root.
  const auto depth = std::distance(from.begin(), from.end()) - 1;
  return relative.empty() || ups > kUpMax || ups >= depth ? path : relative.string();
}

JobWish FromFolder(const std::string& folder, JobWish wish) {
  for (std::string& path : wish.train) path = FromFolder(folder, path);
  for (std::string& path : wish.eval) path = FromFolder(folder, path);
  return wish;
}

// Chooses the share of rows to hold out for evaluation: a tenth, or more if that is too few, unless
// their figures would mislead. Returns the reason if none are held out.
Result<std::string> ChooseShare(FileSystem& files, const DataProfile& profile, const DataPlan& plan,
                                JobWish* wish) {
  std::string why;
  for (const double share : kValidationShares) {
    wish->validation_share = share;
    HDPS_ASSIGN_OR_RETURN(const Job job, ParseJob(PreparedJob(profile, plan, *wish), "job", {}));
    HDPS_ASSIGN_OR_RETURN(const ShareLook look, LookAtShare(files, job));
    const std::vector<std::string> reasons = WhyNotShare(look, share);
    if (reasons.empty()) return std::string();
    if (why.empty()) why = reasons[0];
  }
  wish->validation_share = 0;
  return "the job keeps no rows apart to evaluate on: " + why + " (hdps prepare --eval=FILE)";
}

// Counts the values of the training rows under the split of the wish.
Status MakeVocabulary(FileSystem& files, const DataProfile& profile, uint64_t min_count,
                      DataPlan* plan, JobWish* wish) {
  HDPS_ASSIGN_OR_RETURN(const Job job, ParseJob(PreparedJob(profile, *plan, *wish), "job", {}));
  if (KeySpacesOf(job.data).empty()) {
    return Mistaken(
        "--min_count=" + std::to_string(min_count) +
        ": no column has values that are counted: expected categories, or no such flag");
  }
  HDPS_ASSIGN_OR_RETURN(CountedVocabulary counted, CountVocabulary(files, job, min_count));
  CountKeysOf(counted, plan);
  wish->vocabulary = std::make_shared<const CountedVocabulary>(std::move(counted));
  return {};
}

Result<PreparedFiles> Write(FileSystem& files, const PrepareRequest& request, JobWish wish,
                            const DataProfile& profile, DataPlan plan) {
  const std::string path = JoinPath(request.out, "job.json");
  HDPS_RETURN_IF_ERROR(CheckModel(plan, wish));
  std::string why_no_share;
  if (wish.eval.empty() && plan.task != TaskKind::kPositivesOnly) {
    HDPS_ASSIGN_OR_RETURN(why_no_share, ChooseShare(files, profile, plan, &wish));
  }
  if (wish.validation_block_lines > 0 && wish.validation_share == 0 && why_no_share.empty()) {
    return Mistaken(
        "--split=blocks: rows that are all positive ones are not held out: expected "
        "no such flag");
  }
  if (request.min_count > 0) {
    HDPS_RETURN_IF_ERROR(
        MakeVocabulary(files, profile, static_cast<uint64_t>(request.min_count), &plan, &wish));
  }
  HDPS_ASSIGN_OR_RETURN(Job job, ParseJob(PreparedJob(profile, plan, wish), path, {}));
  if (wish.vocabulary != nullptr) {
    job.data.vocabulary.values = {wish.vocabulary, &wish.vocabulary->vocabulary};
  }
  const std::string text = PreparedJob(profile, plan, FromFolder(request.out, wish));
  HDPS_ASSIGN_OR_RETURN(const DataPreview preview, PreviewJobData(files, job));
  std::string report = PrepareReport(profile, plan, wish);
  if (!why_no_share.empty()) report += "look at       " + why_no_share + "\n";
  for (const std::string& warning : job.warnings) report += "look at       " + warning + "\n";
  for (const std::string& warning : preview.warnings) report += "look at       " + warning + "\n";
  job.data.vocabulary = {};  // It is written, not read.
  const std::vector<InputFile> inputs = InputsOf("", job);
  if (const Status made = files.MakeDirectories(request.out); !made.ok()) {
    return Mistaken("--out=" + request.out + " cannot be written to: " + made.message());
  }
  std::vector<std::pair<std::string, std::string>> outputs = {{"report.txt", report}};
  if (wish.vocabulary != nullptr) {
    outputs.emplace_back(kVocabularyName, wish.vocabulary->vocabulary.Print());
  }
  for (const auto& [name, bytes] : outputs) {
    const std::string output = JoinPath(request.out, name);
    HDPS_RETURN_IF_ERROR(RefuseInput(files, "--out: " + output, output, inputs));
    HDPS_RETURN_IF_ERROR(WriteFileAtomically(files, output, bytes));
  }
  HDPS_RETURN_IF_ERROR(WriteFileAtomically(files, path, text));
  return PreparedFiles{path, JoinPath(request.out, "report.txt"), std::move(report)};
}

// Profiles the training files. If quotes do not pair in rows beyond the first ones, tries to read
// them as letters, and does so if more rows are valid then.
Result<DataProfile> ProfileTrain(FileSystem& files, const JobWish& wish) {
  HDPS_ASSIGN_OR_RETURN(DataLayout layout, TellLayout(files, wish.train[0]));
  for (const std::string& path : wish.train) {
    if (!HasTypedCells(layout.format)) HDPS_RETURN_IF_ERROR(CheckIsText(files, path));
  }
  HDPS_ASSIGN_OR_RETURN(DataProfile train, ProfileData(files, layout, wish.train, {}));
  if (train.unpaired_rows == 0) return train;
  layout.quote.clear();
  HDPS_ASSIGN_OR_RETURN(DataProfile bare, ProfileData(files, layout, wish.train, {}));
  if (bare.ragged_rows >= train.ragged_rows) return train;
  bare.layout.notes.push_back(
      "quotes do not pair in this file: they are letters like others (data.quote \"\")");
  return bare;
}

}  // namespace

Result<PreparedFiles> PrepareFiles(FileSystem& files, const PrepareRequest& request) {
  DataWish data = request.data;
  HDPS_ASSIGN_OR_RETURN(data.task, ReadTask(request.task));
  HDPS_ASSIGN_OR_RETURN(JobWish wish, ReadWish(files, request));
  HDPS_ASSIGN_OR_RETURN(DataProfile train, ProfileTrain(files, wish));
  std::vector<std::string> notes;
  std::optional<DataProfile> eval;
  if (!wish.eval.empty()) {
    HDPS_ASSIGN_OR_RETURN(eval, ProfileEval(files, wish, data, &train, &notes));
  }
  const auto plan_data = [&] { return PlanData(train, eval ? &*eval : nullptr, data); };
  HDPS_ASSIGN_OR_RETURN(DataPlan plan, plan_data());
  if (plan.choices.size() > 1 && request.ask) {
    if (const auto task = request.ask(train.columns[plan.label].name, plan.choices)) {
      data.task = task;
    }
  }
  if (data.task && plan.choices.size() > 1) {
    HDPS_ASSIGN_OR_RETURN(plan, plan_data());
  }
  plan.notes.insert(plan.notes.end(), notes.begin(), notes.end());
  return Write(files, request, std::move(wish), train, std::move(plan));
}

}  // namespace hdps
