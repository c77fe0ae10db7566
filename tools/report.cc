// Defines the flag of hdps report: an HTML file that shows one run, or two.
#include <gflags/gflags.h>

#include <memory>
#include <string>
#include <vector>

#include "common/base/outside_text.h"
#include "common/process/terminal.h"
#include "tools/commands.h"
#include "tools/report/report_file.h"

DEFINE_string(html, "", "File to write; not given: report.html in the first run's folder");

namespace hdps {
namespace {

Status Report(const std::vector<std::string>& arguments) {
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  HDPS_ASSIGN_OR_RETURN(const ReportFile report, WriteReport(*files, arguments, FLAGS_html));
  for (const auto& [folder, note] : report.notes) {
    PrintError("%s: %s\n", folder.c_str(), EscapeUntrusted(note).c_str());
  }
  PrintOut("%s\n", report.path.c_str());
  return {};
}

}  // namespace

Subcommand ReportCommand() {
  return {"report",
          "write one HTML page of a run, or of two beside each other",
          "hdps report OUT [OUT2] [--html=FILE]\n"
          "OUT is the --out of a run, which may still go on. The page has curves\n"
          "of training and evaluation, where time goes, events, the data, the job, and what\n"
          "its members did last; with two runs, both in each picture and the settings that\n"
          "differ.",
          {"html"},
          nullptr,
          Report};
}

}  // namespace hdps
