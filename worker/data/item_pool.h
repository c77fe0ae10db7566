// Keeps the items of the training data, and makes negative examples with them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/job/job_facts.h"
#include "common/platform/file_system.h"
#include "worker/data/row.h"

namespace hdps {

struct DataSpec;
struct Job;

// Collects items, the values of data.item_features in a row. Every worker collects the pool in its
// own pass over data.train, so all workers draw from the same items whatever their part of the
// rows. If there are more than kItemsMax, a sample is kept, drawn without replacement by the seed:
// from the rows under kFrequency, from the distinct items under kUniform.
//
// Invariant: the result of Replace is a function of the files, the seed, and its arguments.
class ItemPool {
 public:
  static constexpr size_t kItemsMax = size_t{1} << 18;

  // Requires: `files` outlives it.
  ItemPool(FileSystem& files, const Job& job, size_t items_max = kItemsMax);
  ~ItemPool();

  // Reads the files once. Unreadable rows are skipped.
  Status Collect();
  uint32_t per_positive() const;
  size_t size() const { return items_.size(); }

  // Sets `*made` to `row`, which has only base features, with the n-th item drawn for its position
  // in the epoch, and label 0. Returns false if kDraws draws gave only the row's own item.
  bool Replace(const Row& row, uint32_t epoch, uint64_t position, uint32_t n, Row* made) const;

 private:
  static constexpr uint64_t kDraws = 16;
  // Keys of the item's features, one feature after another.
  struct Item {
    std::vector<Key> keys;
    std::vector<float> weights;  // As in Row.
    std::vector<uint32_t> ends;  // [item features]
    bool operator==(const Item&) const = default;
  };
  void TakeItem(const Row& row, Item* item) const;
  static uint64_t HashOf(const Item& item);

  FileSystem& files_;
  const std::unique_ptr<const DataSpec> data_;
  const std::vector<LabelSpec> labels_;
  const uint64_t seed_;
  const size_t items_max_;
  // [base features]: index among the item's features; -1 if it is none of them.
  std::vector<int> place_;
  std::vector<size_t> features_;  // [item features], in the order of data.item_features.
  bool collected_ = false;
  std::vector<Item> items_;
};

}  // namespace hdps
