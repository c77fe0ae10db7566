// Exports the vectors of a two_tower model's items.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/base/hash.h"
#include "common/base/nearest_name.h"
#include "common/base/show_number.h"
#include "common/job/data_paths.h"
#include "common/job/job_facts.h"
#include "common/job/spec/layer_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/platform/memory_full.h"
#include "common/process/terminal.h"
#include "tools/export/export.h"
#include "tools/export/safetensors_writer.h"
#include "tools/export/vectors/faiss_index.h"
#include "tools/export/vectors/item_data.h"
#include "tools/inputs/file_names.h"
#include "tools/scoring/checkpoint_model.h"
#include "tools/scoring/tower_vectors.h"
#include "tools/scoring/wanted_keys.h"
#include "worker/data/whole_files/text_rows.h"

namespace hdps {
namespace {

constexpr uint32_t kItemsAtOnce = 4096;

// Returns the index that is written; nothing if the build has none and none was asked for.
Result<std::optional<ItemIndex>> IndexOf(const ExportRequest& request) {
  const std::string& word = request.index;
  if (!word.empty() && word != "exact" && word != "hnsw32") {
    return Status(Code::kInvalidArgument, "--index=" + word + ": expected exact or hnsw32" +
                                              DidYouMean(word, {"exact", "hnsw32"}));
  }
  if (!HasFaiss()) {
    if (word.empty()) return std::optional<ItemIndex>();
    return Status(Code::kInvalidArgument,
                  "--index=" + word +
                      ": this build of hdps lacks libfaiss; scripts/install_deps.sh --export "
                      "installs libfaiss-dev; then configure and build again");
  }
  return std::optional(word == "hnsw32" ? ItemIndex::kHnsw32 : ItemIndex::kExact);
}

Result<std::vector<std::string>> FilesOfItems(const ExportTask& task) {
  const std::vector<std::string> named = SplitFileList(task.files, task.request.items);
  if (named.empty()) {
    return Status(Code::kInvalidArgument,
                  "--items is missing; give the files with the items, --items=FILE,...");
  }
  std::vector<std::string> paths;
  for (const std::string& name : named) {
    HDPS_ASSIGN_OR_RETURN(const std::vector<std::string> here, FilesOf(task.files, name));
    if (here.empty()) {
      return Status(Code::kInvalidArgument,
                    "--items: there is no file " +
                        std::filesystem::absolute(name).lexically_normal().string());
    }
    paths.insert(paths.end(), here.begin(), here.end());
  }
  return paths;
}

// The items of files, each text once.
struct Items {
  std::string texts;  // A line each.
  std::vector<float> vectors;
  uint64_t count = 0;
  uint64_t other_vectors = 0;  // Rows with the text of an earlier row and another vector.
  uint64_t unknown_ids = 0;    // Ids from their column's vocab_size on.
};

// Collects items row by row.
//
// Invariant: first_ has the place among the items of every text so far, by its hash.
class ItemCollector {
 public:
  explicit ItemCollector(uint32_t dim) : dim_(dim) {}

  void Add(const TextBatch& batch, std::span<const float> vectors) {
    for (size_t i = 0; i < batch.texts.size(); ++i) {
      const std::span<const float> vector = vectors.subspan(i * dim_, dim_);
      const auto [at, fresh] = first_.try_emplace(HashString(batch.texts[i]), items_.count);
      if (!fresh) {
        const std::span<const float> kept = std::span(items_.vectors).subspan(at->second * dim_);
        items_.other_vectors += std::ranges::equal(vector, kept.first(dim_)) ? 0 : 1;
        continue;
      }
      items_.texts += batch.texts[i] + "\n";
      items_.vectors.insert(items_.vectors.end(), vector.begin(), vector.end());
      ++items_.count;
    }
    for (const uint32_t ids : batch.rows.unknown_ids) items_.unknown_ids += ids;
  }
  Items Take() { return std::move(items_); }

 private:
  const uint32_t dim_;
  Items items_;
  std::unordered_map<uint64_t, uint64_t> first_;
};

// Files of items, which are read twice.
struct ItemFiles {
  std::vector<std::string> paths;
  ItemData items;
};

// Calls use(batch, names of its features) with all rows, some thousand at a time. Returns their
// number.
template <typename Use>
Result<uint64_t> VisitRows(FileSystem& files, const ItemFiles& from, const Use& use) {
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

// Returns the model with the rows of the items' keys, and sets the number of the files' rows.
Result<std::unique_ptr<CheckpointModel>> LoadItems(const ExportTask& task, TowerRows& tower,
                                                   const ItemFiles& from, uint64_t* num_rows) {
  const MemoryFor memory("the keys of all items (--items)");
  WantedKeys wanted(task.job.tables.size());
  StepParts parts;
  const auto want = [&](const TextBatch& batch, const FeatureNames& names) -> Status {
    HDPS_RETURN_IF_ERROR(tower.Assign(batch.rows, names, &parts));
    for (uint32_t t = 0; t < task.job.tables.size(); ++t) wanted.Want({t}, parts.KeysOf({t}));
    return {};
  };
  HDPS_ASSIGN_OR_RETURN(*num_rows, VisitRows(task.files, from, want));
  wanted.Seal();
  HDPS_ASSIGN_OR_RETURN(
      std::unique_ptr<CheckpointModel> loaded,
      CheckpointModel::LoadWanted(task.files, task.job, task.request.common.checkpoint,
                                  task.request.common.which, task.executor, wanted));
  loaded->set_unknown_keys(UnknownKeys::kZero);
  return loaded;
}

// `num_rows`: the number of rows when the files were read before.
Result<Items> ReadItems(const ExportTask& task, const ItemFiles& from, uint64_t num_rows,
                        TowerVectors& tower) {
  const MemoryFor memory("the vectors of all items (--items)");
  ItemCollector collector(tower.dim());
  const auto add = [&](const TextBatch& batch, const FeatureNames& names) -> Status {
    HDPS_ASSIGN_OR_RETURN(const std::vector<float> vectors, tower.Of(batch.rows, names));
    collector.Add(batch, vectors);
    return {};
  };
  HDPS_ASSIGN_OR_RETURN(const uint64_t again, VisitRows(task.files, from, add));
  if (again != num_rows) {
    return Status(Code::kInvalidArgument,
                  "--items: " + std::to_string(num_rows) + " rows when read first, and then " +
                      std::to_string(again) + "; give files that can be read twice");
  }
  Items read = collector.Take();
  if (read.count > 0) return read;
  return Status(Code::kInvalidArgument,
                "--items: there is no row in these files; give files with rows");
}

SafeMetadata MetadataOf(const ExportTask& task, CheckpointModel& loaded) {
  SafeMetadata metadata;
  metadata["job"] = task.found.manifest.job_json;
  metadata["step"] = std::to_string(task.found.manifest.clock);
  for (const LayerSpec& layer : task.job.model.layers) {
    if (layer.name != "user") continue;
    metadata["temperature"] = ShowNumber("%.9g", layer.numbers.at("temperature"));
  }
  metadata["bias"] = ShowNumber("%.9g", static_cast<double>(ScoreBias(loaded)));
  return metadata;
}

Status WriteItems(const ExportTask& task, const Items& items, uint32_t dim,
                  const SafeMetadata& metadata) {
  HDPS_RETURN_IF_ERROR(WriteSafetensors(task.files, JoinPath(task.folder, "items.safetensors"),
                                        {{"vectors", "F32", {items.count, dim}}},
                                        {std::as_bytes(std::span(items.vectors))}, metadata));
  const std::string path = JoinPath(task.folder, "items.txt");
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, task.files.Create(path));
  HDPS_RETURN_IF_ERROR(file->Append(std::as_bytes(std::span(items.texts))));
  HDPS_RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

// Tells what a reader of the files could not see.
void Tell(const Items& items, const UnknownCount& unknown) {
  if (const std::string text = unknown.Tell(); !text.empty()) PrintError("%s\n", text.c_str());
  if (items.unknown_ids > 0) {
    PrintError("%llu ids from their vocab_size on read as zeros\n",
               static_cast<unsigned long long>(items.unknown_ids));
  }
  if (items.other_vectors > 0) {
    PrintError("%llu rows have the text of an earlier item and another vector: the first counts\n",
               static_cast<unsigned long long>(items.other_vectors));
  }
}

}  // namespace

Status ExportVectors(ExportTask& task) {
  HDPS_ASSIGN_OR_RETURN(const std::optional<ItemIndex> index, IndexOf(task.request));
  ItemFiles from;
  HDPS_ASSIGN_OR_RETURN(from.paths, FilesOfItems(task));
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<TowerRows> rows,
                        TowerRows::New(task.job, Tower::kItem));
  HDPS_ASSIGN_OR_RETURN(
      from.items, DataOfItems(task.job.data, rows->features().sparse, task.request.item_text));
  uint64_t num_rows = 0;
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointModel> loaded,
                        LoadItems(task, *rows, from, &num_rows));
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<TowerVectors> tower,
                        TowerVectors::New(*loaded, Tower::kItem, task.executor));
  HDPS_ASSIGN_OR_RETURN(const Items items, ReadItems(task, from, num_rows, *tower));
  HDPS_RETURN_IF_ERROR(WriteItems(task, items, tower->dim(), MetadataOf(task, *loaded)));
  if (index) {
    HDPS_RETURN_IF_ERROR(WriteFaissIndex(task.files, JoinPath(task.folder, "items.faiss"), *index,
                                         items.vectors, tower->dim()));
  }
  Tell(items, tower->unknown());
  task.to << ShowWhole(static_cast<double>(items.count)) << " items, vectors of " << tower->dim()
          << " floats in items.safetensors, their texts in items.txt"
          << (index ? ", an index of inner products in items.faiss"
                    : "; no items.faiss, because this build lacks libfaiss")
          << "\n";
  return {};
}

}  // namespace hdps
