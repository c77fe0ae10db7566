// hdps prepare: from files to a job that trains on them, and a report of what they hold.
#include <gflags/gflags.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "common/base/nearest_name.h"
#include "common/job/data_paths.h"
#include "common/job/job.h"
#include "common/platform/file_system.h"
#include "tools/commands.h"
#include "tools/common_flags.h"
#include "tools/prepare/prepare_report.h"
#include "worker/data/data_preview.h"

DEFINE_string(label, "", "The label's column; not needed where names and values tell it");
DEFINE_string(eval, "",
              "Files to evaluate on, FILE,...; not given: the last of several files, or a tenth of "
              "the rows of one");
DECLARE_string(model);

namespace hdps {
namespace {

constexpr double kValidationShare = 0.1;

Status Mistaken(const std::string& message) { return {Code::kInvalidArgument, message}; }

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

std::vector<std::string> SplitAtCommas(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// What the command line says.
struct Request {
  std::string out;
  JobWish wish;
  std::string label;
};

Result<Request> ReadRequest(FileSystem& files, const std::vector<std::string>& arguments) {
  HDPS_ASSIGN_OR_RETURN(const CommonFlags flags, ReadCommonFlags());
  Request request;
  request.out = flags.out;
  request.label = FLAGS_label;
  if (arguments.empty()) {
    return Mistaken("no file is named: expected hdps prepare FILE... --out=DIR");
  }
  if (flags.out.empty()) return Mistaken("--out is missing: expected --out=DIR to write into");
  if (files.Exists(JoinPath(flags.out, "job.json"))) {
    return Mistaken("--out=" + flags.out +
                    ": there is a job.json already, and it is left as it is: "
                    "expected another folder, or that file removed");
  }
  JobWish& wish = request.wish;
  const std::vector<std::string> models = {"wide_deep", "deepfm", "dcn_v2", "dlrm", "logistic"};
  if (!FLAGS_model.empty()) wish.model = FLAGS_model;
  if (std::ranges::find(models, wish.model) == models.end()) {
    return Mistaken("--model=" + wish.model +
                    ": expected wide_deep, deepfm, dcn_v2, dlrm or logistic" +
                    DidYouMean(wish.model, models));
  }
  HDPS_ASSIGN_OR_RETURN(wish.train, AllFiles(files, arguments, ""));
  HDPS_ASSIGN_OR_RETURN(wish.eval, AllFiles(files, SplitAtCommas(FLAGS_eval), "--eval="));
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
  wish.name = std::filesystem::path(wish.train[0]).filename().replace_extension().string();
  return request;
}

// Files to evaluate on without the header that those to train on have, in the same order: the job
// reads all by place, and passes the header over as a comment.
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

// The label of the files to evaluate on, which have to be like those to train on.
Result<DataProfile> ProfileEval(FileSystem& files, const JobWish& wish, const std::string& label,
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
  HDPS_ASSIGN_OR_RETURN(const DataPlan plan, PlanData(*train, nullptr, label));
  return ProfileData(files, train->layout, wish.eval, {.only = train->columns[plan.label].name});
}

Status Write(FileSystem& files, const Request& request, const DataProfile& profile,
             const DataPlan& plan) {
  JobWish wish = request.wish;
  const std::string path = JoinPath(request.out, "job.json");
  if (wish.eval.empty()) wish.validation_share = kValidationShare;
  const std::string text = PreparedJob(profile, plan, wish);
  HDPS_ASSIGN_OR_RETURN(const Job job, ParseJob(text, path, {}));
  HDPS_ASSIGN_OR_RETURN(const DataPreview preview, PreviewJobData(files, job));
  std::string report = PrepareReport(profile, plan, wish);
  for (const std::string& warning : job.warnings) report += "look at       " + warning + "\n";
  for (const std::string& warning : preview.warnings) report += "look at       " + warning + "\n";
  if (const Status made = files.MakeDirectories(request.out); !made.ok()) {
    return Mistaken("--out=" + request.out + " cannot be written to: " + made.message());
  }
  HDPS_RETURN_IF_ERROR(WriteFileAtomically(files, JoinPath(request.out, "report.txt"), report));
  HDPS_RETURN_IF_ERROR(WriteFileAtomically(files, path, text));
  std::fputs(report.c_str(), stdout);
  std::printf("\n%s, %s\nto train on it: hdps train --job=%s --out=%s\n", path.c_str(),
              JoinPath(request.out, "report.txt").c_str(), path.c_str(),
              JoinPath(request.out, "run").c_str());
  return {};
}

Status Prepare(const std::vector<std::string>& arguments) {
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  HDPS_ASSIGN_OR_RETURN(const Request request, ReadRequest(*files, arguments));
  const JobWish& wish = request.wish;
  HDPS_ASSIGN_OR_RETURN(const DataLayout layout, TellLayout(*files, wish.train[0]));
  HDPS_ASSIGN_OR_RETURN(DataProfile train, ProfileData(*files, layout, wish.train, {}));
  DataPlan plan;
  if (wish.eval.empty()) {
    HDPS_ASSIGN_OR_RETURN(plan, PlanData(train, nullptr, request.label));
  } else {
    std::vector<std::string> notes;
    HDPS_ASSIGN_OR_RETURN(const DataProfile eval,
                          ProfileEval(*files, wish, request.label, &train, &notes));
    HDPS_ASSIGN_OR_RETURN(plan, PlanData(train, &eval, request.label));
    plan.notes.insert(plan.notes.end(), notes.begin(), notes.end());
  }
  return Write(*files, request, train, plan);
}

}  // namespace

Subcommand PrepareCommand() {
  return {"prepare",
          "look at data files, and write a job that trains on them",
          "hdps prepare FILE... --out=DIR [--label=NAME] [--eval=FILE,...]\n"
          "                    [--model=wide_deep]\n"
          "Reads csv, tsv, criteo, libsvm, libffm or libfm files, packed or not, once,\n"
          "tells their columns, and writes DIR/job.json, which trains as it is, and\n"
          "DIR/report.txt.",
          {"out", "label", "eval", "model"},
          nullptr,
          Prepare};
}

}  // namespace hdps
