// Looks each wanted key up in the ascending keys that go by.
#include "tools/export/wanted_rows.h"

#include <glog/logging.h>

#include <algorithm>

#include "common/base/status.h"
#include "common/job/job_spec.h"
#include "common/job/spec/table_spec.h"

namespace hdps {

WantedRows::WantedRows(const Job& job) {
  for (const TableSpec& table : job.tables) tables_.emplace_back().dim = table.dim;
}

void WantedRows::Want(TableId table, std::span<const Key> keys) {
  std::vector<Key>& all = tables_[table.value].keys;
  all.insert(all.end(), keys.begin(), keys.end());
}

void WantedRows::Seal() {
  for (Table& table : tables_) {
    std::ranges::sort(table.keys);
    const auto repeats = std::ranges::unique(table.keys);
    table.keys.erase(repeats.begin(), repeats.end());
    table.rows.resize(table.keys.size() * table.dim);
    table.there.resize(table.keys.size());
  }
}

void WantedRows::Take(TableId table, std::span<const Key> keys, std::span<const float> rows,
                      uint32_t row_floats, uint32_t first_column, uint32_t dim) {
  Table& wanted = tables_[table.value];
  if (keys.empty()) return;
  auto at = keys.begin();
  for (auto key = std::ranges::lower_bound(wanted.keys, keys.front()); key != wanted.keys.end();
       ++key) {
    at = std::lower_bound(at, keys.end(), *key);
    if (at == keys.end()) return;
    if (*at != *key) continue;
    const auto i = static_cast<size_t>(key - wanted.keys.begin());
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
  const auto at = std::ranges::lower_bound(wanted.keys, key);
  CHECK(at != wanted.keys.end() && *at == key);
  const auto i = static_cast<size_t>(at - wanted.keys.begin());
  std::copy_n(&wanted.rows[i * wanted.dim], wanted.dim, row.begin());
  return wanted.there[i] != 0;
}

}  // namespace hdps
