// Takes the batches out of an Arrow C stream one by one.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "common/base/status.h"
#include "worker/data/columnar/columns.h"

struct ArrowArrayStream;

namespace hdps {

// Gives batches as tables with the columns of the stream, in order.
//
// Invariant: it holds the last batch. A dictionary that the next one shares with it is the same
// chunk there, so whoever knows it need not look at it again.
class ColumnStream {
 public:
  // Takes the stream over and releases it, also after an error. kInvalidArgument for a stream that
  // contradicts the interface, as ColumnTable::FromStream().
  static Result<std::unique_ptr<ColumnStream>> Open(ArrowArrayStream* stream);
  ~ColumnStream();

  const std::vector<ColumnTable::Column>& columns() const { return columns_; }
  // Returns the next batch, which may be without rows; null behind the last one. kInvalidArgument
  // for what contradicts the interface, and with its text for an error of the stream.
  Result<std::shared_ptr<const ColumnTable>> Next();

 private:
  struct Stream;  // The C struct, which is released with it.
  ColumnStream();

  std::unique_ptr<Stream> stream_;
  std::vector<ColumnTable::Column> columns_;
  std::shared_ptr<const ColumnTable> last_;  // Null before the first batch with rows.
  uint64_t taken_ = 0;                       // Batches that Next() gave.
};

}  // namespace hdps
