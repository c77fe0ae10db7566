// Exports the vectors of a two_tower model's items.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/base/nearest_name.h"
#include "common/base/show_number.h"
#include "common/job/spec/layer_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/platform/memory_full.h"
#include "common/process/terminal.h"
#include "tools/export/export.h"
#include "tools/export/safetensors_writer.h"
#include "tools/export/vectors/faiss_index.h"
#include "tools/export/vectors/item_data.h"
#include "tools/export/vectors/item_vectors.h"
#include "tools/scoring/checkpoint_model.h"
#include "tools/scoring/towers/tower_vectors.h"
#include "tools/scoring/wanted_keys.h"

namespace hdps {
namespace {

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
  HDPS_ASSIGN_OR_RETURN(*num_rows, VisitItems(task.files, from, want));
  wanted.Seal();
  HDPS_ASSIGN_OR_RETURN(
      std::unique_ptr<CheckpointModel> loaded,
      CheckpointModel::LoadWanted(task.files, task.job, task.request.common.checkpoint,
                                  task.request.common.which, task.executor, wanted));
  loaded->set_unknown_keys(UnknownKeys::kZero);
  return loaded;
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
                                        {{"vectors", "F32", {items.texts.size(), dim}}},
                                        {std::as_bytes(std::span(items.vectors))}, metadata));
  const std::string path = JoinPath(task.folder, "items.txt");
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, task.files.Create(path));
  std::string lines;
  for (const std::string& text : items.texts) lines += text + "\n";
  HDPS_RETURN_IF_ERROR(file->Append(std::as_bytes(std::span(lines))));
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
  HDPS_ASSIGN_OR_RETURN(from.paths, FilesOfItems(task.files, task.request.items));
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<TowerRows> rows,
                        TowerRows::New(task.job, Tower::kItem));
  HDPS_ASSIGN_OR_RETURN(
      from.items, DataOfItems(task.job.data, rows->features().sparse, task.request.item_text));
  uint64_t num_rows = 0;
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointModel> loaded,
                        LoadItems(task, *rows, from, &num_rows));
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<TowerVectors> tower,
                        TowerVectors::New(*loaded, Tower::kItem, task.executor));
  HDPS_ASSIGN_OR_RETURN(const Items items, ReadItems(task.files, from, *tower, num_rows));
  HDPS_RETURN_IF_ERROR(WriteItems(task, items, tower->dim(), MetadataOf(task, *loaded)));
  if (index) {
    HDPS_RETURN_IF_ERROR(WriteFaissIndex(task.files, JoinPath(task.folder, "items.faiss"), *index,
                                         items.vectors, tower->dim()));
  }
  Tell(items, tower->unknown());
  task.to << ShowWhole(static_cast<double>(items.texts.size())) << " items, vectors of "
          << tower->dim() << " floats in items.safetensors, their texts in items.txt"
          << (index ? ", an index of inner products in items.faiss"
                    : "; no items.faiss, because this build lacks libfaiss")
          << "\n";
  return {};
}

}  // namespace hdps
