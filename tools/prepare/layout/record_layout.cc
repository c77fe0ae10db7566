// Merges the fields of the first rows.
#include "tools/prepare/layout/record_layout.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/job/spec/data_spec.h"
#include "worker/data/indexed_reader.h"
#include "worker/data/line_reader.h"
#include "worker/data/records/record_fields.h"
#include "worker/data/row.h"

namespace hdps {
namespace {

constexpr size_t kRowsMax = 500;

// Returns the fields of the first rows, in the order in which they come.
Result<std::vector<RecordField>> FieldsOf(FileSystem& files, const std::string& path,
                                          DataFormat format) {
  DataSpec data;
  data.format = format;
  LineReader lines(files, {path}, FileRulesOf(data, {path}, /*labels_read=*/false));
  HDPS_RETURN_IF_ERROR(lines.Start());
  std::vector<RecordField> fields;
  std::map<std::string, size_t> index;
  Line line;
  for (size_t row = 0; row < kRowsMax; ++row) {
    HDPS_ASSIGN_OR_RETURN(const bool found, lines.Next(&line));
    if (!found) break;
    for (RecordField& field :
         format == DataFormat::kJsonl ? FieldsOfJson(line.text) : FieldsOfExample(line.text)) {
      const auto [known, added] = index.emplace(field.name, fields.size());
      if (added) {
        fields.push_back(std::move(field));
        continue;
      }
      RecordField& merged = fields[known->second];
      merged.list = merged.list || field.list;
      merged.fraction = merged.fraction || field.fraction;
      merged.other = merged.other || field.other;
    }
  }
  return fields;
}

}  // namespace

bool IsJsonLines(FileSystem& files, const std::string& path) {
  LineReader lines(files, {path}, {});
  Line line;
  if (!lines.Start().ok()) return false;
  const Result<bool> found = lines.Next(&line);
  if (!found.ok() || !*found || !line.text.starts_with('{')) return false;
  return IsJsonObject(line.text);
}

Result<DataLayout> TellRecords(FileSystem& files, const std::string& path, DataFormat format) {
  HDPS_ASSIGN_OR_RETURN(const std::vector<RecordField> fields, FieldsOf(files, path, format));
  DataLayout layout;
  layout.format = format;
  for (const RecordField& field : fields) {
    if (field.other || (field.list && field.fraction)) {
      layout.notes.push_back("column '" + Printable(field.name) + "' has " +
                             (field.other ? "objects or lists of lists" : "lists of fractions") +
                             ", which are not read: it is left out");
      continue;
    }
    layout.names.push_back(field.name);
    if (field.list) layout.lists.insert(field.name);
    if (field.fraction) layout.fractions.insert(field.name);
  }
  if (layout.names.empty()) {
    return Status(Code::kInvalidArgument,
                  path + ": the first " + std::to_string(kRowsMax) +
                      " rows have no column of a type that is read: expected integers, numbers, "
                      "texts, or lists of integers or texts");
  }
  return layout;
}

}  // namespace hdps
