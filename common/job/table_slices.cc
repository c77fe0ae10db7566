// Maps features to shards.
#include "common/job/table_slices.h"

#include <algorithm>
#include <map>

#include "common/job/job_facts.h"
#include "common/job/job_registry.h"
#include "common/job/job_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/layer_spec.h"
#include "common/job/spec/model_spec.h"

namespace hdps {

namespace {

// Returns the name that salts the keys of each sparse feature.
std::vector<std::string> KeySpaces(const DataSpec& data) {
  std::vector<std::string> spaces = FeaturesOf(data).sparse;
  if (!HasNamedColumns(data.format)) return spaces;
  for (const ColumnSpec& column : data.columns) {
    const auto feature = std::ranges::find(spaces, column.name);
    const bool sparse =
        column.type == ColumnType::kCategorical || column.type == ColumnType::kMulti;
    if (sparse && feature != spaces.end()) *feature = column.key_space();
  }
  return spaces;
}

// Returns the first shard of part `part` of `parts`, as shards are dealt to servers.
uint32_t FirstShard(uint64_t part, uint64_t parts, uint64_t num_shards) {
  return static_cast<uint32_t>((part * num_shards + parts - 1) / parts);
}

}  // namespace

std::vector<uint32_t> FeaturesOfTable(const Job& job, const std::string& table) {
  const std::vector<std::string> all = FeaturesOf(job.data).sparse;
  std::vector<bool> read(all.size(), false);
  for (const LayerSpec& layer : job.model.layers) {
    if (!ReadsRows(job.model, layer) || layer.table != table) continue;
    if (layer.features.empty()) read.assign(all.size(), true);
    for (const std::string& name : layer.features) {
      const auto found = std::ranges::find(all, name);
      if (found != all.end()) read[static_cast<size_t>(found - all.begin())] = true;
    }
  }
  std::vector<uint32_t> features;
  for (uint32_t f = 0; f < read.size(); ++f) {
    if (read[f]) features.push_back(f);
  }
  return features;
}

bool SameCut(const TableSpec& a, const TableSpec& b) {
  if (a.slice_mode != b.slice_mode) return false;
  if (a.slice_mode == SliceMode::kField) return a.manual_shapes == b.manual_shapes;
  return a.row_slices() == b.row_slices();
}

std::string WhyNotRecut(const TableSpec& from, const TableSpec& to) {
  if (SameCut(from, to)) return "";
  if (to.slice_mode == SliceMode::kField) {
    return "field_slice places a row by its feature, and the key of a saved row does not tell it";
  }
  if (from.policy.admit_after > 1) {
    return "policy.admit_after counts keys without a row in each shard, and such a count does not "
           "tell its key";
  }
  return "";
}

std::vector<uint32_t> FieldShards(const Job& job, const TableSpec& table,
                                  std::span<const uint32_t> features) {
  const uint64_t num_shards = job.cluster.shards, count = features.size();
  std::vector<uint32_t> shards;
  for (uint64_t f = 0; f < count && table.manual_shapes.empty(); ++f) {
    shards.push_back(static_cast<uint32_t>(f * num_shards / count));
  }
  const size_t slices = table.manual_shapes.size();
  for (size_t slice = 0; slice < slices; ++slice) {
    const uint32_t begin = FirstShard(slice, slices, num_shards);
    const uint64_t its = FirstShard(slice + 1, slices, num_shards) - begin;
    const uint64_t fields = table.manual_shapes[slice];
    for (uint64_t f = 0; f < fields; ++f) {
      shards.push_back(begin + static_cast<uint32_t>(f * its / fields));
    }
  }
  const std::vector<std::string> spaces = KeySpaces(job.data);
  std::map<std::string, uint32_t> of_space;
  for (size_t f = 0; f < shards.size(); ++f) {
    shards[f] = of_space.try_emplace(spaces[features[f]], shards[f]).first->second;
  }
  return shards;
}

}  // namespace hdps
