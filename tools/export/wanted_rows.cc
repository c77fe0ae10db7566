// Looks each wanted key up in the ascending keys that go by.
#include "tools/export/wanted_rows.h"

#include <glog/logging.h>

#include <algorithm>

#include "common/base/status.h"
#include "common/job/job_spec.h"
#include "common/job/spec/table_spec.h"

namespace hdps {

WantedRows::WantedRows(const Job& job) : keys_(job.tables.size()) {
  for (const TableSpec& table : job.tables) tables_.emplace_back().dim = table.dim;
}

void WantedRows::Seal() {
  keys_.Seal();
  for (uint32_t t = 0; t < tables_.size(); ++t) {
    tables_[t].rows.resize(num_keys({t}) * tables_[t].dim);
    tables_[t].there.resize(num_keys({t}));
  }
}

void WantedRows::Take(TableId table, std::span<const Key> keys, std::span<const float> rows,
                      uint32_t row_floats, uint32_t first_column, uint32_t dim) {
  Table& wanted = tables_[table.value];
  const std::span<const Key> all = keys_.Of(table);
  if (keys.empty()) return;
  auto at = keys.begin();
  for (auto key = std::ranges::lower_bound(all, keys.front()); key != all.end(); ++key) {
    at = std::lower_bound(at, keys.end(), *key);
    if (at == keys.end()) return;
    if (*at != *key) continue;
    const auto i = static_cast<size_t>(key - all.begin());
    const auto row = static_cast<size_t>(at - keys.begin());
    std::copy_n(&rows[row * row_floats], dim, &wanted.rows[i * wanted.dim + first_column]);
    wanted.there[i] = 1;
  }
}

uint64_t WantedRows::num_there(TableId table) const {
  const std::vector<uint8_t>& there = tables_[table.value].there;
  return static_cast<uint64_t>(std::ranges::count(there, 1));
}

bool WantedRows::Read(TableId table, Key key, std::span<float> row) const {
  const Table& wanted = tables_[table.value];
  const std::span<const Key> all = keys_.Of(table);
  const auto at = std::ranges::lower_bound(all, key);
  CHECK(at != all.end() && *at == key);
  const auto i = static_cast<size_t>(at - all.begin());
  std::copy_n(&wanted.rows[i * wanted.dim], wanted.dim, row.begin());
  return wanted.there[i] != 0;
}

}  // namespace hdps
