// Implements hdps report: an HTML file that shows one run, or two.
#include <gflags/gflags.h>

#include <memory>
#include <string>
#include <vector>

#include "common/base/outside_text.h"
#include "common/platform/output_file.h"
#include "common/process/terminal.h"
#include "tools/commands.h"
#include "tools/report/report_page.h"

DEFINE_string(html, "", "File to write; not given: report.html in the first run's folder");

namespace hdps {
namespace {

Status Report(const std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments.size() > 2) {
    return {Code::kInvalidArgument, std::to_string(arguments.size()) +
                                        " folders are named: expected hdps report OUT, or two runs "
                                        "to compare, hdps report OUT OUT2"};
  }
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  std::vector<RunFiles> runs;
  for (const std::string& folder : arguments) {
    HDPS_ASSIGN_OR_RETURN(runs.emplace_back(), ReadRunFiles(*files, folder));
    for (const std::string& note : runs.back().notes) {
      PrintError("%s: %s\n", folder.c_str(), EscapeUntrusted(note).c_str());
    }
  }
  const std::string path = FLAGS_html.empty() ? JoinPath(arguments[0], "report.html") : FLAGS_html;
  std::vector<InputFile> inputs;
  for (const std::string& folder : arguments) {
    for (const char* name : {"summary.json", "metrics.jsonl", "job_as_run.json"}) {
      inputs.push_back({"a file of the run", JoinPath(folder, name)});
    }
  }
  HDPS_RETURN_IF_ERROR(RefuseInput(*files, "--html=" + path, path, inputs));
  const Status written = WriteNamedFile(*files, path, ReportPage(runs));
  if (!written.ok()) {
    return {Code::kInvalidArgument, "--html=" + path + " cannot be written: " + written.message()};
  }
  PrintOut("%s\n", path.c_str());
  return {};
}

}  // namespace

Subcommand ReportCommand() {
  return {"report",
          "write one HTML page of a run, or of two beside each other",
          "hdps report OUT [OUT2] [--html=FILE]\n"
          "OUT is the --out of a run, which may still go on. The page has curves\n"
          "of training and evaluation, where time goes, events, the data and the job; with\n"
          "two runs, both in each picture and the settings that differ.",
          {"html"},
          nullptr,
          Report};
}

}  // namespace hdps
