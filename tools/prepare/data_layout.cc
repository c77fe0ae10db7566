// Tries the formats from the most to the least specific.
#include "tools/prepare/data_layout.h"

#include <optional>

#include "tools/prepare/layout/entry_layout.h"
#include "tools/prepare/layout/foreign_file.h"
#include "tools/prepare/layout/parquet_layout.h"
#include "tools/prepare/layout/record_layout.h"
#include "tools/prepare/layout/table_layout.h"
#include "worker/data/line_reader.h"
#include "worker/data/number.h"
#include "worker/data/records/parquet_source.h"
#include "worker/data/records/tfrecord_files.h"

namespace hdps {
namespace {

constexpr size_t kLinesMax = 500;
constexpr size_t kCriteoCells = 40;

Result<std::vector<FirstLine>> FirstLines(FileSystem& files, const std::string& path) {
  LineReader lines(files, {path}, {});
  HDPS_RETURN_IF_ERROR(lines.Start());
  std::vector<FirstLine> first;
  for (Line line; first.size() < kLinesMax;) {
    HDPS_ASSIGN_OR_RETURN(const bool found, lines.Next(&line));
    if (!found) break;
    first.push_back({std::string(line.text), line.place.number});
  }
  if (first.empty()) {
    return Status(Code::kInvalidArgument,
                  path + ": there is no row in this file; give a file with rows");
  }
  return first;
}

bool IsCriteo(const std::vector<FirstLine>& lines, bool* header) {
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::vector<std::string> cells = CellsOf(lines[i].text, '\t', "\"");
    if (cells.size() != kCriteoCells) return false;
    const std::optional<double> label = ParseNumber(cells[0]);
    bool row = label && (*label == 0 || *label == 1 || *label == -1);
    for (size_t c = 1; c <= 13; ++c) row = row && (cells[c].empty() || ParseNumber(cells[c]));
    if (!row && i == 0 && lines.size() > 1) {
      *header = true;
    } else if (!row) {
      return false;
    }
  }
  return true;
}

}  // namespace

Result<DataLayout> TellLayout(FileSystem& files, const std::string& path) {
  if (IsParquet(files, path)) return TellParquet(files, path);
  if (IsTfrecord(files, path)) return TellRecords(files, path, DataFormat::kTfrecord);
  if (IsJsonLines(files, path)) return TellRecords(files, path, DataFormat::kJsonl);
  HDPS_RETURN_IF_ERROR(CheckIsText(files, path));
  HDPS_ASSIGN_OR_RETURN(const std::vector<FirstLine> lines, FirstLines(files, path));
  DataLayout layout;
  if (IsCriteo(lines, &layout.header)) {
    layout.format = DataFormat::kCriteo;
    return layout;
  }
  HDPS_ASSIGN_OR_RETURN(const std::optional<DataLayout> entries, TellEntries(path, lines));
  if (entries) return *entries;
  return TellTable(path, lines);
}

}  // namespace hdps
