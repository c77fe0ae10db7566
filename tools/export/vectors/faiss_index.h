// Writes vectors as an index that FAISS reads.
// Source of the indices: Johnson, Douze, Jegou, "Billion-scale similarity search with GPUs", 2017;
// Malkov, Yashunin, "Efficient and robust approximate nearest neighbor search using HNSW", 2016.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "common/base/status.h"
#include "common/platform/file_system.h"

namespace hdps {

// kExact compares a query with every vector. kHnsw32 walks a graph of 32 neighbors a vector.
enum class ItemIndex : uint8_t { kExact, kHnsw32 };

// Returns whether this build has libfaiss.
bool HasFaiss();

// Writes an index of inner products over `vectors` [n, dim]; the id of a vector is its number from
// 0 on. Requires: HasFaiss().
Status WriteFaissIndex(FileSystem& files, const std::string& path, ItemIndex kind,
                       std::span<const float> vectors, uint32_t dim);

}  // namespace hdps
