// Defines the flags of hdps prepare: makes a job that trains on given files, and reports what they
// contain.
#include <gflags/gflags.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/outside_text.h"
#include "common/base/shell_word.h"
#include "common/job/data_paths.h"
#include "common/job/job_file.h"
#include "common/platform/file_system.h"
#include "common/process/terminal.h"
#include "tools/commands.h"
#include "tools/common_flags.h"
#include "tools/inputs/file_names.h"
#include "tools/prepare/kept_rows.h"
#include "tools/prepare/layout/table_layout.h"
#include "tools/prepare/prepare_files.h"

DEFINE_string(label, "", "Column of the label; not needed where names and values tell it");
DEFINE_string(eval, "",
              "Files to evaluate on, FILE,...; not given: the last of several files, or a tenth of "
              "the rows of one");
DEFINE_string(group, "", "Column that names the user or query of a row, for rankings");
DEFINE_string(weight, "", "Column with the weight of a row");
DEFINE_string(multi, "", "Columns with several values a cell, NAME,...");
DEFINE_string(skip, "", "Columns that are left out, NAME,...");
DEFINE_string(
    positive, "",
    "Labels that mean 1: \">=4\", \"=text\" or \"text1|text2\"; not needed where values tell it");
DEFINE_int64(min_count, 0,
             "Makes a vocabulary: values that come fewer times in the rows trained on share one "
             "key a feature; 0: none. MindSpore's model zoo keeps those of 101");
DEFINE_string(split, "rows",
              "How rows are held out where no --eval is given: rows, one by one, or blocks, of "
              "1,000 lines each");
DEFINE_string(task, "",
              "What is learned: binary, classes, rating, or ranking (each row is an event of a "
              "user and an item); not needed where names and values tell it");
DEFINE_bool(cache, false,
            "Parses the rows once more and keeps them, in the folder rows beside the job or, with "
            "--job, at its data.cache_path; every job on the same data and settings reads them "
            "there");
DECLARE_string(categorical);
DECLARE_string(numeric);
DECLARE_int64(max_bad_rows);
DECLARE_string(set);
DECLARE_string(model);

namespace hdps {
namespace {

// Splits names of columns or files: "a,b" and "\"a, b\",c", quoted if they contain commas.
std::vector<std::string> NamesOf(const std::string& text) {
  std::vector<std::string> names = CellsOf(text, ',', "\"");
  std::erase(names, "");
  return names;
}

DataWish ReadDataWish() {
  DataWish wish;
  wish.label = FLAGS_label;
  wish.group = FLAGS_group;
  wish.weight = FLAGS_weight;
  wish.categorical = NamesOf(FLAGS_categorical);
  wish.numeric = NamesOf(FLAGS_numeric);
  wish.multi = NamesOf(FLAGS_multi);
  wish.skip = NamesOf(FLAGS_skip);
  wish.positive = FLAGS_positive;
  if (FLAGS_max_bad_rows >= 0) wish.max_bad_rows = static_cast<uint64_t>(FLAGS_max_bad_rows);
  return wish;
}

// Asks the user which task is meant if there is a terminal.
std::optional<TaskKind> AskForTask(const std::string& label, const std::vector<TaskKind>& choices) {
  if (isatty(STDIN_FILENO) == 0 || isatty(STDOUT_FILENO) == 0) return std::nullopt;
  PrintOut("label '%s' has several numbers: is it", EscapeUntrusted(label).c_str());
  for (size_t i = 0; i < choices.size(); ++i) {
    PrintOut("%s %s", i == 0 ? "" : " or", std::string(WordOf(choices[i])).c_str());
  }
  PrintOut("? [%s] ", std::string(WordOf(choices[0])).c_str());
  std::fflush(stdout);
  std::string answer;
  for (int c = std::getchar(); c != EOF && c != '\n'; c = std::getchar()) {
    answer += static_cast<char>(c);
  }
  for (const TaskKind choice : choices) {
    if (answer == WordOf(choice)) return choice;
  }
  return std::nullopt;
}

// Keeps the rows of the job in a file.
Status KeepRows(FileSystem& files, const std::string& path,
                const std::vector<std::string>& overrides) {
  HDPS_ASSIGN_OR_RETURN(const Job job, LoadJob(files, path, overrides, DataFiles::kMustExist));
  HDPS_ASSIGN_OR_RETURN(const std::vector<KeptRows> kept, KeepRowsOf(job, files));
  PrintOutText(DescribeKeptRows(kept));
  return {};
}

Status Prepare(const std::vector<std::string>& arguments) {
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  HDPS_ASSIGN_OR_RETURN(const CommonFlags flags, ReadCommonFlags());
  if (!flags.job.empty()) {
    if (FLAGS_cache && arguments.empty()) return KeepRows(*files, flags.job, flags.overrides);
    return {Code::kInvalidArgument,
            "--job=" + flags.job +
                " is for --cache alone, to keep the rows of a job that is there already: expected "
                "--cache and no FILE"};
  }
  if (!FLAGS_set.empty()) {
    return {Code::kInvalidArgument, "--set counts with --job alone: expected no such flag"};
  }
  PrepareRequest request;
  request.files = arguments;
  request.eval = SplitFileList(*files, FLAGS_eval);
  request.out = flags.out;
  request.model = FLAGS_model;
  request.data = ReadDataWish();
  request.task = FLAGS_task;
  request.min_count = FLAGS_min_count;
  request.split = FLAGS_split;
  request.cache = FLAGS_cache;
  request.ask = AskForTask;
  HDPS_ASSIGN_OR_RETURN(const PreparedFiles made, PrepareFiles(*files, request));
  PrintOutText(made.report);
  PrintOut("\n%s, %s\nto train on it: hdps train --job=%s --out=%s\n", ShellWord(made.job).c_str(),
           ShellWord(made.report_file).c_str(), ShellWord(made.job).c_str(),
           ShellWord(JoinPath(request.out, "run")).c_str());
  return FLAGS_cache ? KeepRows(*files, made.job, {}) : Status();
}

}  // namespace

Subcommand PrepareCommand() {
  return {"prepare",
          "read data files and write a job that trains on them",
          "hdps prepare FILE... --out=DIR [--label=NAME] [--eval=FILE,...]\n"
          "                    [--model=TYPE] [--task=rating] [--positive=\">=4\"]\n"
          "                    [--categorical=NAME,... --numeric=NAME,... --multi=NAME,...]\n"
          "                    [--skip=NAME,... --group=NAME --weight=NAME]\n"
          "                    [--min_count=N] [--split=blocks] [--cache]\n"
          "hdps prepare --job=FILE --cache\n"
          "Reads csv, tsv, criteo, libsvm, libffm or libfm files, compressed or not,\n"
          "once, finds the type of each column, and writes DIR/job.json, which trains as\n"
          "it is, and DIR/report.txt. With --min_count it also counts the values, in\n"
          "further passes, and writes DIR/vocabulary.keys. Flags correct what it finds\n"
          "wrongly; a name with a comma stands in double quotes: --skip='\"a, b\",c'.\n"
          "With --cache it also keeps the parsed rows, which training reads faster.",
          {"out", "label", "eval", "model", "task", "positive", "categorical", "numeric", "multi",
           "skip", "group", "weight", "min_count", "split", "cache", "job", "set", "max_bad_rows"},
          nullptr,
          Prepare};
}

}  // namespace hdps
