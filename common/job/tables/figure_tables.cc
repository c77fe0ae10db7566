// Leaves dense tables out.
#include "common/job/tables/figure_tables.h"

#include "common/job/job_spec.h"
#include "common/job/spec/table_spec.h"

namespace hdps {

std::vector<std::string> FigureTables(const Job& job) {
  std::vector<std::string> names;
  for (const TableSpec& table : job.tables) {
    if (!table.dense) names.push_back(table.name);
  }
  return names;
}

}  // namespace hdps
