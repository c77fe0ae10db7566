// Compares names with those of the job.
#include "tools/serve/versions/lookup_table.h"

#include <algorithm>
#include <vector>

#include "common/base/nearest_name.h"
#include "common/job/job_facts.h"
#include "common/job/job_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/table_slices.h"

namespace hdps {
namespace {

std::string Listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

}  // namespace

Result<TableId> TableOfLookup(const Job& job, const std::string& name) {
  std::vector<std::string> known;
  for (uint32_t t = 0; t < job.tables.size(); ++t) {
    if (job.tables[t].dense) continue;
    if (job.tables[t].name == name) return TableId{t};
    known.push_back(job.tables[t].name);
  }
  return Status(Code::kInvalidArgument, "table: there is no table \"" + name + "\"" +
                                            DidYouMean(name, known) + "; expected " +
                                            Listed(known));
}

Status CheckReads(const Job& job, const std::string& table, const std::string& feature) {
  std::vector<std::string> known;
  for (const uint32_t f : FeaturesOfTable(job, table)) {
    known.push_back(FeaturesOf(job.data).sparse[f]);
  }
  if (std::ranges::find(known, feature) != known.end()) return {};
  return {Code::kInvalidArgument, "feature: the table \"" + table + "\" has no rows of \"" +
                                      feature + "\"" + DidYouMean(feature, known) + "; expected " +
                                      Listed(known)};
}

}  // namespace hdps
