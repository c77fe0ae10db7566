// Counts rows and labels on each side of the split.
#include "worker/data/held_out/share_look.h"

#include <unordered_map>

#include "common/base/show_number.h"
#include "common/job/job_spec.h"
#include "common/job/spec/data_spec.h"
#include "worker/data/columnar/table_files.h"
#include "worker/data/data_description.h"
#include "worker/data/held_out/hold_out.h"
#include "worker/data/indexed_reader.h"
#include "worker/data/whole_files/parsed_rows.h"

namespace hdps {
namespace {

// If not all rows were read, a class counts as missing only if more than this many rows of it were
// expected.
constexpr double kExpectedMin = 10;

// Returns "class 1", "classes 2, 5 and 7 more"; empty if none is missing on the side that gets
// `share`.
std::string MissingClasses(const std::vector<uint64_t>& here, const std::vector<uint64_t>& there,
                           double share, bool whole) {
  constexpr size_t kShownMax = 5;
  std::string text;
  size_t missing = 0;
  for (size_t c = 0; c < here.size(); ++c) {
    if (here[c] > 0 || there[c] == 0) continue;
    if (!whole && static_cast<double>(there[c]) * share < kExpectedMin) continue;
    if (++missing <= kShownMax) text += (missing == 1 ? "" : ", ") + std::to_string(c);
  }
  if (missing > kShownMax) text += " and " + Whole(missing - kShownMax) + " more";
  return text;
}

}  // namespace

Result<ShareLook> LookAtShare(FileSystem& files, const Job& job) {
  const std::vector<LabelSpec> labels = LabelsOf(job);
  const auto hold_out = std::make_shared<HoldOut>(job.data, job.seed);
  LineRules rules = FileRulesOf(job.data, job.data.train, /*labels_read=*/true);
  rules.hold_out = hold_out;
  std::vector<std::string> paths;
  for (const std::string& path : job.data.train) {
    HDPS_ASSIGN_OR_RETURN(const uint64_t bytes, DataBytes(files, job.data, path));
    if (bytes > 0) paths.push_back(path);  // A pipe can be read only once.
  }
  ShareLook look;
  if (paths.empty()) return look;
  ParsedRows rows(files, job.data, paths, labels, rules);
  HDPS_RETURN_IF_ERROR(rows.Start());
  const bool classes = labels[0].num_classes != kLabelsAnyNumber;
  if (classes) look.trained_labels.resize(labels[0].num_classes);
  if (classes) look.held_out_labels.resize(labels[0].num_classes);
  std::unordered_map<uint64_t, uint64_t> copies;  // Number of rows held out, by their hash.
  Row row;
  while (look.trained + look.held_out < kShareRowsMax && rows.bytes_read() < kShareBytesMax) {
    HDPS_ASSIGN_OR_RETURN(const bool found, rows.Next(&row));
    look.whole = !found && paths.size() == job.data.train.size();
    if (!found) break;
    const Line& line = rows.line();
    const bool held_out = hold_out->Has(line.place, line.text);
    ++(held_out ? look.held_out : look.trained);
    if (held_out) ++copies[hold_out->HashOf(line.place.file, line.text)];
    if (!classes) continue;
    const float label = row.task_labels.empty() ? row.label : row.task_labels[0];
    ++(held_out ? look.held_out_labels : look.trained_labels)[static_cast<size_t>(label)];
  }
  double squares = 0;
  for (const auto& [hash, count] : copies) {
    squares += static_cast<double>(count) * static_cast<double>(count);
  }
  const auto all = static_cast<double>(look.held_out);
  if (squares > 0) look.different = all * all / squares;
  return look;
}

std::vector<std::string> WhyNotShare(const ShareLook& look, double share) {
  std::vector<std::string> why;
  const uint64_t all = look.trained + look.held_out;
  if (all == 0) return why;
  const std::string holds = "data.validation_share holds out " + Whole(look.held_out) +
                            (look.whole ? " of " : " of the first ") + Counted(all, "row");
  if (look.different < kShareDifferentMin) {
    const bool copies = look.different < 0.9 * static_cast<double>(look.held_out);
    why.push_back(holds + ", which are too few to tell how good a model is" +
                  (copies ? ": they repeat as " + ShowNumber("%.1f", look.different) +
                                " different rows would (rows that are equal but for their label "
                                "stay together)"
                          : "") +
                  "; name files in data.eval instead");
  }
  for (const bool held_out : {true, false}) {
    const auto& here = held_out ? look.held_out_labels : look.trained_labels;
    const auto& there = held_out ? look.trained_labels : look.held_out_labels;
    const std::string missing =
        MissingClasses(here, there, held_out ? share : 1 - share, look.whole);
    if (missing.empty()) continue;
    why.push_back(holds +
                  (held_out ? " and none that has the label " : " and all that have the label ") +
                  missing + "; name files in data.eval instead");
  }
  return why;
}

}  // namespace hdps
