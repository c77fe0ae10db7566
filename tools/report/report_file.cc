// Reads the runs and writes the page.
#include "tools/report/report_file.h"

#include "common/platform/output_file.h"
#include "tools/report/report_page.h"

namespace hdps {

Result<ReportFile> WriteReport(FileSystem& files, const std::vector<std::string>& folders,
                               const std::string& path) {
  if (folders.empty() || folders.size() > 2) {
    return Status(Code::kInvalidArgument,
                  std::to_string(folders.size()) +
                      " folders are named: expected hdps report OUT, or two runs to compare, hdps "
                      "report OUT OUT2");
  }
  ReportFile report;
  std::vector<RunFiles> runs;
  for (const std::string& folder : folders) {
    HDPS_ASSIGN_OR_RETURN(runs.emplace_back(), ReadRunFiles(files, folder));
    for (const std::string& note : runs.back().notes) report.notes.emplace_back(folder, note);
  }
  report.path = path.empty() ? JoinPath(folders[0], "report.html") : path;
  std::vector<InputFile> inputs;
  for (const std::string& folder : folders) {
    for (const char* name : {"summary.json", "metrics.jsonl", "job_as_run.json"}) {
      inputs.push_back({"a file of the run", JoinPath(folder, name)});
    }
  }
  HDPS_RETURN_IF_ERROR(RefuseInput(files, "--html=" + report.path, report.path, inputs));
  report.page = ReportPage(runs);
  const Status written = WriteNamedFile(files, report.path, report.page);
  if (written.ok()) return report;
  return Status(Code::kInvalidArgument,
                "--html=" + report.path + " cannot be written: " + written.message());
}

}  // namespace hdps
