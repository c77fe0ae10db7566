// Keeps the items with the smallest random priorities (bottom-k sampling), which needs one pass.

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <span>
#include <utility>

#include "common/base/hash.h"
#include "common/job/job_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/platform/memory_full.h"
#include "common/platform/random.h"
#include "worker/data/formats/derived_features.h"
#include "worker/data/indexed_reader.h"
#include "worker/data/item_pool.h"
#include "worker/data/whole_files/parsed_rows.h"

namespace hdps {
namespace {

// Keep these draws independent of the other uses of the job's seed.
constexpr uint64_t kSampleSalt = 0x6974656d73616d70;
constexpr uint64_t kDrawSalt = 0x6974656d64726177;

}  // namespace

ItemPool::~ItemPool() = default;

uint32_t ItemPool::per_positive() const { return data_->negatives.per_positive; }

ItemPool::ItemPool(FileSystem& files, const Job& job, size_t items_max)
    : files_(files),
      data_(std::make_unique<const DataSpec>(job.data)),
      labels_(LabelsOf(job)),
      seed_(job.seed),
      items_max_(items_max) {
  const std::vector<std::string> base = BaseFeaturesOf(*data_);
  place_.assign(base.size(), -1);
  for (const std::string& name : data_->item_features) {
    const auto feature = static_cast<size_t>(std::ranges::find(base, name) - base.begin());
    place_[feature] = static_cast<int>(features_.size());
    features_.push_back(feature);
  }
}

void ItemPool::TakeItem(const Row& row, Item* item) const {
  item->keys.clear();
  item->weights.clear();
  item->ends.clear();
  for (const size_t f : features_) {
    for (uint32_t i = row.KeyBegin(f); i < row.key_ends[f]; ++i) {
      item->keys.push_back(row.keys[i]);
      if (!row.weights.empty()) item->weights.push_back(row.weights[i]);
    }
    item->ends.push_back(static_cast<uint32_t>(item->keys.size()));
  }
}

uint64_t ItemPool::HashOf(const Item& item) {
  return HashBytes(std::as_bytes(std::span(item.keys)),
                   HashBytes(std::as_bytes(std::span(item.ends))));
}

Status ItemPool::Collect() {
  const MemoryFor items("the items that negatives are drawn from (data.negatives)");
  if (collected_) return {};
  collected_ = true;
  // Rows that are held out give no items.
  ParsedRows rows(files_, *data_, data_->train, labels_,
                  RulesOf(*data_, data_->train, {.seed = seed_, .side = RowSide::kTrained}));
  HDPS_RETURN_IF_ERROR(rows.Start());
  const bool uniform = data_->negatives.by == NegativesBy::kUniform;
  // Ordered by priority, then by what it was drawn for: a row's number, or an item's hash. An item
  // that has left the sample cannot return, because its priority stays the same.
  std::map<std::pair<uint64_t, uint64_t>, Item> kept;
  Row row;
  Item item;
  while (true) {
    HDPS_ASSIGN_OR_RETURN(const bool found, rows.Next(&row));
    if (!found) break;
    TakeItem(row, &item);
    const uint64_t of = uniform ? HashOf(item) : rows.number();
    const std::pair<uint64_t, uint64_t> priority(RandomAt(seed_ ^ kSampleSalt, of), of);
    if (kept.size() == items_max_ && priority > kept.rbegin()->first) continue;
    kept.try_emplace(priority, item);
    if (kept.size() > items_max_) kept.erase(std::prev(kept.end()));
  }
  for (auto& [priority, one] : kept) items_.push_back(std::move(one));
  return {};
}

bool ItemPool::Replace(const Row& row, uint32_t epoch, uint64_t position, uint32_t n,
                       Row* made) const {
  if (items_.empty()) return false;
  Item own;
  TakeItem(row, &own);
  Random draws(RandomAt(RandomAt(seed_ ^ kDrawSalt, epoch), position) + n);
  const Item* other = &own;
  for (uint64_t draw = 0; draw < kDraws && *other == own; ++draw) {
    other = &items_[draws.Below(items_.size())];
  }
  if (*other == own) return false;
  *made = row;
  made->label = 0;
  made->positive_texts = 0;
  made->keys.clear();
  made->weights.clear();
  made->key_ends.clear();
  for (size_t f = 0; f < row.key_ends.size(); ++f) {
    const bool replaced = place_[f] >= 0;
    const auto at = static_cast<size_t>(std::max(place_[f], 0));
    const std::vector<Key>& keys = replaced ? other->keys : row.keys;
    const std::vector<float>& weights = replaced ? other->weights : row.weights;
    const uint32_t item_begin = at == 0 ? 0 : other->ends[at - 1];
    const uint32_t begin = replaced ? item_begin : row.KeyBegin(f);
    const uint32_t end = replaced ? other->ends[at] : row.key_ends[f];
    // If only one of the two rows has weights, the other's are 1.
    const bool weighted = !row.weights.empty() || !other->weights.empty();
    for (uint32_t i = begin; i < end; ++i) {
      made->keys.push_back(keys[i]);
      if (weighted) made->weights.push_back(weights.empty() ? 1.0f : weights[i]);
    }
    made->EndFeature();
  }
  return true;
}

}  // namespace hdps
