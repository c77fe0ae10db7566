// Chooses the column that is the label.
#pragma once

#include "common/base/status.h"
#include "tools/prepare/data_profile.h"
#include "tools/prepare/data_wish.h"

namespace hdps {

// The columns whose names say that they are the user and the item; kNoColumn: none.
struct UserAndItem {
  size_t user = kNoColumn, item = kNoColumn;
  bool both() const { return user != kNoColumn && item != kNoColumn; }
};
UserAndItem FindUserAndItem(const DataProfile& train, const DataWish& wish);

// Returns the label's column, or kNoColumn if all rows have label 1; a user and an item column show
// this, or `wish.task`. Returns kInvalidArgument if more than one column, or none, may be the
// label.
Result<size_t> FindLabel(const DataProfile& train, const DataWish& wish);

// Returns the error for a column that does not exist: "--label=yy: there is no such column in
// t.csv; did you mean "y"?". It also tells if the name is in the first line, which was not taken as
// header.
Status NoSuchColumn(const DataProfile& train, const std::string& flag, const std::string& name);

}  // namespace hdps
