// Computes the vectors of the items that files have.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/job/job_facts.h"
#include "common/platform/file_system.h"
#include "tools/export/vectors/item_data.h"
#include "tools/scoring/towers/tower_vectors.h"
#include "worker/data/whole_files/text_rows.h"

namespace hdps {

struct ItemFiles {
  std::vector<std::string> paths;
  ItemData items;
};

// The items of files, each text once.
struct Items {
  std::vector<std::string> texts;
  std::vector<float> vectors;  // [texts, dim]
  uint64_t rows = 0;           // Of the files.
  uint64_t other_vectors = 0;  // Rows with the text of an earlier row and another vector.
  uint64_t unknown_ids = 0;    // Ids from their column's vocab_size on.
};

// Returns the files that --items names. kInvalidArgument if there are none.
Result<std::vector<std::string>> FilesOfItems(FileSystem& files, const std::string& items);

// Calls use(batch, names of its features) with all rows, some thousand at a time. Returns their
// number.
Result<uint64_t> VisitItems(
    FileSystem& files, const ItemFiles& from,
    const std::function<Status(const TextBatch& batch, const FeatureNames& names)>& use);

// Returns the items with their vectors. `rows_before`: the number of rows when the files were read
// before; 0: they were not. kInvalidArgument if there is no row now, or another number.
Result<Items> ReadItems(FileSystem& files, const ItemFiles& from, TowerVectors& tower,
                        uint64_t rows_before = 0);

}  // namespace hdps
