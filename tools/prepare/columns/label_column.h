// The choice of the column that is the label.
#pragma once

#include "common/base/status.h"
#include "tools/prepare/data_profile.h"
#include "tools/prepare/data_wish.h"

namespace hdps {

// Columns that say whom and what a row is about, by their names; kNoColumn: none does.
struct UserAndItem {
  size_t user = kNoColumn, item = kNoColumn;
  bool both() const { return user != kNoColumn && item != kNoColumn; }
};
UserAndItem FindUserAndItem(const DataProfile& train, const DataWish& wish);

// kNoColumn where all rows are of label 1, which a user and an item show, or `wish.task`.
// kInvalidArgument where no column is the label beyond doubt.
Result<size_t> FindLabel(const DataProfile& train, const DataWish& wish);

// "--label=yy: there is no such column in t.csv; did you mean "y"?", and whether the first line,
// which was not taken for a header, has it.
Status NoSuchColumn(const DataProfile& train, const std::string& flag, const std::string& name);

}  // namespace hdps
