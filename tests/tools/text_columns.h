// Columns of texts as a table in memory.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "worker/data/columnar/columns.h"

namespace hdps {

// Columns of texts that a table points into.
class TextColumns {
 public:
  void Add(const std::string& name, const std::vector<std::string>& cells) {
    std::string& bytes = texts_.emplace_back();
    std::vector<int64_t>& offsets = offsets_.emplace_back(1);
    for (const std::string& cell : cells) {
      bytes += cell;
      offsets.push_back(static_cast<int64_t>(bytes.size()));
    }
    ColumnTable::Column& column = columns_.emplace_back();
    column.name = name;
    column.type.kind = CellKind::kLargeText;
    column.type.name = "text";
    ColumnChunk& chunk = chunks_.emplace_back();
    chunk.length = static_cast<int64_t>(cells.size());
    chunk.cells = offsets.data();
    chunk.bytes = bytes.data();
  }
  // Requires: this outlives the table.
  std::shared_ptr<const ColumnTable> Table() const {
    auto table = ColumnTable::FromChunks(columns_, chunks_, nullptr);
    EXPECT_TRUE(table.ok()) << table.status().message();
    return *std::move(table);
  }

 private:
  std::deque<std::string> texts_;
  std::deque<std::vector<int64_t>> offsets_;
  std::vector<ColumnTable::Column> columns_;
  std::vector<ColumnChunk> chunks_;
};

}  // namespace hdps
