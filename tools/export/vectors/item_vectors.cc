// Reads the files of items row by row.
#include "tools/export/vectors/item_vectors.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>

#include "common/base/hash.h"
#include "common/job/data_paths.h"
#include "common/platform/memory_full.h"
#include "tools/inputs/file_names.h"

namespace hdps {
namespace {

constexpr uint32_t kItemsAtOnce = 4096;

// Collects items row by row.
//
// Invariant: first_ has the place among the items of every text so far, by its hash.
class ItemCollector {
 public:
  explicit ItemCollector(uint32_t dim) : dim_(dim) {}

  void Add(const TextBatch& batch, std::span<const float> vectors) {
    for (size_t i = 0; i < batch.texts.size(); ++i) {
      const std::span<const float> vector = vectors.subspan(i * dim_, dim_);
      const auto [at, fresh] = first_.try_emplace(HashString(batch.texts[i]), items_.texts.size());
      if (!fresh) {
        const std::span<const float> kept = std::span(items_.vectors).subspan(at->second * dim_);
        items_.other_vectors += std::ranges::equal(vector, kept.first(dim_)) ? 0 : 1;
        continue;
      }
      items_.texts.push_back(batch.texts[i]);
      items_.vectors.insert(items_.vectors.end(), vector.begin(), vector.end());
    }
    for (const uint32_t ids : batch.rows.unknown_ids) items_.unknown_ids += ids;
  }
  Items Take() { return std::move(items_); }

 private:
  const uint32_t dim_;
  Items items_;
  std::unordered_map<uint64_t, uint64_t> first_;
};

}  // namespace

Result<std::vector<std::string>> FilesOfItems(FileSystem& files, const std::string& items) {
  const std::vector<std::string> named = SplitFileList(files, items);
  if (named.empty()) {
    return Status(Code::kInvalidArgument,
                  "--items is missing; give the files with the items, --items=FILE,...");
  }
  std::vector<std::string> paths;
  for (const std::string& name : named) {
    HDPS_ASSIGN_OR_RETURN(const std::vector<std::string> here, FilesOf(files, name));
    if (here.empty()) {
      return Status(Code::kInvalidArgument,
                    "--items: there is no file " +
                        std::filesystem::absolute(name).lexically_normal().string());
    }
    paths.insert(paths.end(), here.begin(), here.end());
  }
  return paths;
}

Result<uint64_t> VisitItems(
    FileSystem& files, const ItemFiles& from,
    const std::function<Status(const TextBatch& batch, const FeatureNames& names)>& use) {
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<TextRows> rows,
                        NewTextRows(files, from.items.data, from.paths, from.items.text_column));
  const FeatureNames names = FeaturesOf(from.items.data);
  uint64_t count = 0;
  while (true) {
    HDPS_ASSIGN_OR_RETURN(const TextBatch batch, rows->Next(kItemsAtOnce));
    if (batch.texts.empty()) return count;
    count += batch.texts.size();
    HDPS_RETURN_IF_ERROR(use(batch, names));
  }
}

Result<Items> ReadItems(FileSystem& files, const ItemFiles& from, TowerVectors& tower,
                        uint64_t rows_before) {
  const MemoryFor memory("the vectors of all items (--items)");
  ItemCollector collector(tower.dim());
  const auto add = [&](const TextBatch& batch, const FeatureNames& names) -> Status {
    HDPS_ASSIGN_OR_RETURN(const std::vector<float> vectors, tower.Of(batch.rows, names));
    collector.Add(batch, vectors);
    return {};
  };
  HDPS_ASSIGN_OR_RETURN(const uint64_t rows, VisitItems(files, from, add));
  if (rows_before != 0 && rows != rows_before) {
    return Status(Code::kInvalidArgument,
                  "--items: " + std::to_string(rows_before) + " rows when read first, and then " +
                      std::to_string(rows) + "; give files that can be read twice");
  }
  if (rows == 0) {
    return Status(Code::kInvalidArgument,
                  "--items: there is no row in these files; give files with rows");
  }
  Items read = collector.Take();
  read.rows = rows;
  return read;
}

}  // namespace hdps
