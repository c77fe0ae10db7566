// The items of the training data, and negative examples made with them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/job/job_facts.h"
#include "common/job/spec/data_spec.h"
#include "common/platform/file_system.h"
#include "worker/data/row.h"

namespace hdps {

struct Job;

// An item is what a row has of data.item_features. The pool is collected in one pass over
// data.train, by every worker alike, so whatever part of the rows a worker has, it draws from the
// same items. Of more than kItemsMax a sample stays, drawn without replacement by the seed: of the
// rows under kFrequency, of the different items under kUniform.
//
// Invariant: what Replace gives is a function of the files, the seed, and its arguments.
class ItemPool {
 public:
  static constexpr size_t kItemsMax = size_t{1} << 18;

  // `files` outlives it.
  ItemPool(FileSystem& files, const Job& job, size_t items_max = kItemsMax);

  // Reads the files, once. Rows that cannot be read are passed over.
  Status Collect();
  uint32_t per_positive() const { return data_.negatives.per_positive; }
  size_t size() const { return items_.size(); }

  // `*made` = `row`, which has base features alone, with the n-th item drawn for its position of
  // the epoch, and label 0. False where kDraws draws gave nothing but the row's own item.
  bool Replace(const Row& row, uint32_t epoch, uint64_t position, uint32_t n, Row* made) const;

 private:
  static constexpr uint64_t kDraws = 16;
  // The keys of the item's features, one after the other.
  struct Item {
    std::vector<Key> keys;
    std::vector<float> weights;  // As Row has them.
    std::vector<uint32_t> ends;  // [item features]
    bool operator==(const Item&) const = default;
  };
  void TakeItem(const Row& row, Item* item) const;
  static uint64_t HashOf(const Item& item);

  FileSystem& files_;
  const DataSpec data_;
  const std::vector<LabelSpec> labels_;
  const uint64_t seed_;
  const size_t items_max_;
  std::vector<int> place_;        // [base features]: among the item's; -1: it is none of them.
  std::vector<size_t> features_;  // [item features], as data.item_features has them.
  bool collected_ = false;
  std::vector<Item> items_;
};

}  // namespace hdps
