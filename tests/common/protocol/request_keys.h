// Finds the keys of each table in the section of a request.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "common/protocol/table_keys.h"

namespace hdps {

// Returns the keys of each of `tables`; some have those of a table before them.
inline std::vector<std::span<const Key>> KeysByTable(const std::vector<TableKeys>& tables,
                                                     std::span<const Key> section) {
  std::vector<std::span<const Key>> keys;
  for (const TableKeys& table : tables) {
    if (!table.has_own_keys()) {
      keys.push_back(keys[table.keys_of - 1]);
      continue;
    }
    keys.push_back(section.first(table.num_keys));
    section = section.subspan(table.num_keys);
  }
  return keys;
}

}  // namespace hdps
