// Turns columns that items do not need into ones that files to predict may lack.
#include "tools/export/vectors/item_data.h"

#include <algorithm>
#include <set>

#include "common/base/nearest_name.h"
#include "common/job/job_facts.h"
#include "worker/data/data_description.h"

namespace hdps {
namespace {

// Adds the columns and features that the feature `name` is derived from, and itself.
void AddSources(const DataSpec& data, const std::string& name, std::set<std::string>* needed) {
  if (!needed->insert(name).second) return;
  for (const FeatureSpec& feature : data.features) {
    if (feature.name != name) continue;
    for (const std::string& from : feature.from) AddSources(data, from, needed);
  }
}

// Returns the column whose cells name the items.
Result<std::string> TextColumn(const DataSpec& data, const std::vector<std::string>& features,
                               const std::string& given) {
  const std::vector<std::string> columns = ColumnNames(data);
  if (!given.empty()) {
    if (std::ranges::find(columns, given) != columns.end()) return given;
    return Status(Code::kInvalidArgument, "--item_text=" + given +
                                              ": the job has no such column with cells of its own" +
                                              DidYouMean(given, columns));
  }
  for (const std::string& feature : features) {
    if (std::ranges::find(columns, feature) != columns.end()) return feature;
    const auto column = std::ranges::find(data.columns, feature, &ColumnSpec::name);
    if (column != data.columns.end()) return column->cell();
  }
  return Status(Code::kInvalidArgument,
                "--item_text is missing, and no item feature is a column; name the column whose "
                "texts name the items");
}

}  // namespace

Result<ItemData> DataOfItems(const DataSpec& data, const std::vector<std::string>& features,
                             const std::string& text_column) {
  if (!HasNamedColumns(data.format) && data.format != DataFormat::kCriteo) {
    return Status(Code::kInvalidArgument, "--format=vectors: data.format is " +
                                              std::string(WordOf(data.format)) +
                                              ": expected csv or criteo, whose cells have names");
  }
  ItemData items{data, ""};
  HDPS_ASSIGN_OR_RETURN(items.text_column, TextColumn(data, features, text_column));
  if (!HasNamedColumns(data.format)) return items;
  std::set<std::string> needed;
  for (const std::string& feature : features) AddSources(data, feature, &needed);
  std::set<std::string> cells = {items.text_column};
  for (const ColumnSpec& column : data.columns) {
    if (needed.contains(column.name)) cells.insert(column.cell());
  }
  std::erase_if(items.data.columns, [&](const ColumnSpec& column) {
    return !column.has_cell() && !needed.contains(column.name);
  });
  for (ColumnSpec& column : items.data.columns) {
    if (needed.contains(column.name)) continue;
    // A group may be absent from rows to predict, and is not looked at there.
    column.type = cells.contains(column.name) ? ColumnType::kSkip : ColumnType::kGroup;
  }
  std::erase_if(items.data.features,
                [&](const FeatureSpec& feature) { return !needed.contains(feature.name); });
  return items;
}

}  // namespace hdps
