// Looks each distinct key of a step up once, and counts its occurrences by the step's positions.
#include "tools/scoring/unknown_count.h"

#include <algorithm>
#include <optional>
#include <span>

#include "common/base/hash.h"
#include "common/base/show_number.h"
#include "common/job/job_spec.h"
#include "common/job/spec/table_spec.h"

namespace hdps {
namespace {

std::string Percent(uint64_t part, uint64_t whole) {
  return ShowNumber("%.3g", 100 * static_cast<double>(part) / static_cast<double>(whole)) + " %";
}

}  // namespace

UnknownCount::UnknownCount(const CheckpointModel& loaded)
    : loaded_(loaded), seen_(loaded.job().tables.size()) {
  for (auto& of_table : seen_) of_table.resize(loaded.checkpoint().manifest.num_shards);
}

bool UnknownCount::AddDistinct(TableId table, Key key, std::optional<uint32_t> field_shard) {
  const std::optional<CheckpointModel::RowPlace> place = loaded_.FindRow(table, key, field_shard);
  if (place) {
    std::vector<bool>& seen = seen_[table.value][place->shard];
    if (place->row >= seen.size()) seen.resize(size_t{place->row} + 1);
    distinct_known_ += seen[place->row] ? 0 : 1;
    seen[place->row] = true;
    return false;
  }
  const uint64_t hash = CombineKeys(table.value, key);
  if (unknown_keys_.size() < kDistinctMax) {
    unknown_keys_.insert(hash);
  } else if (!unknown_keys_.contains(hash)) {
    distinct_cut_ = true;
  }
  return true;
}

void UnknownCount::Add(TableId table, const KeySet& set) {
  without_.resize(set.unique.size());
  for (size_t k = 0; k < set.unique.size(); ++k) {
    const auto shard = set.field_shard.empty() ? std::nullopt : std::optional(set.field_shard[k]);
    without_[k] = AddDistinct(table, set.unique[k], shard) ? 1 : 0;
  }
  for (const std::vector<uint32_t>& of_feature : set.row_index) {
    keys_ += of_feature.size();
    for (const uint32_t k : of_feature) unknown_ += static_cast<uint64_t>(without_[k]);
  }
}

bool UnknownCount::Add(const StepParts& step) {
  const uint64_t before = unknown_;
  for (uint32_t t = 0; t < seen_.size(); ++t) {
    const KeySet* const set = step.empty() ? nullptr : step.SetOf(0, {t});
    if (set != nullptr) Add({t}, *set);
  }
  return unknown_ > before;
}

std::string UnknownCount::Tell() const {
  if (unknown_ == 0) return "";
  const bool zeros = loaded_.unknown_keys() == UnknownKeys::kZero;
  return (distinct_cut_ ? "more than " : "") + std::to_string(distinct_unknown()) + " of " +
         std::to_string(distinct()) + " distinct keys (" + Percent(distinct_unknown(), distinct()) +
         "), " + Percent(unknown_, keys_) + " of all, have no row in the checkpoint and read as " +
         (zeros ? "zeros" : "their initial values");
}

}  // namespace hdps
