// Reads the stream of an epoch from rows that an earlier pass has kept.
#pragma once

#include <functional>
#include <memory>

#include "worker/data/batch_reader.h"
#include "worker/data/cache/row_writer.h"
#include "worker/data/formats/row_adder.h"
#include "worker/data/indexed_reader.h"

namespace hdps {

// Is true if rows that are read with these options may be kept: their labels are read, and bad ones
// are counted.
bool ReadsFromCache(const ReaderOptions& options);

// Lets a reader of text give all rows of its next epoch to the writer; null: of none any more.
using KeepRows = std::function<void(RowWriter* writer)>;

// Makes a reader that gives the same batches as `text`, which reads an epoch whose rows are not
// kept and goes on where kept ones are damaged. `keep` makes `text` give its rows away; null: it
// cannot. Requires: options.cache is set.
std::unique_ptr<BatchReader> NewCachedReader(const ReaderInput& input,
                                             std::unique_ptr<RowAdder> rows,
                                             std::unique_ptr<BatchReader> text, KeepRows keep);

}  // namespace hdps
