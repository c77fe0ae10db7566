// Reads rows of a table by the columns of a tower, some at a time.
#include "tools/export/vectors/table_vectors.h"

#include <algorithm>
#include <utility>

#include "common/job/job_facts.h"
#include "common/platform/memory_full.h"
#include "tools/export/vectors/item_data.h"
#include "worker/data/columnar/table_rows.h"

namespace hdps {
namespace {

constexpr uint64_t kRowsAtOnce = 4096;

}  // namespace

TableVectors::TableVectors() = default;
TableVectors::~TableVectors() = default;

Result<std::unique_ptr<TableVectors>> TableVectors::New(RowScorer& scorer, Tower tower,
                                                        Executor& executor) {
  std::unique_ptr<TableVectors> made(new TableVectors());
  HDPS_ASSIGN_OR_RETURN(made->tower_, TowerVectors::New(scorer.loaded(), tower, executor,
                                                        /*counts_unknown=*/false));
  std::vector<std::string> read = made->tower_->features().sparse;
  const std::vector<std::string>& numeric = made->tower_->features().numeric;
  read.insert(read.end(), numeric.begin(), numeric.end());
  HDPS_ASSIGN_OR_RETURN(ItemData data, DataOfItems(scorer.columns(), read, ""));
  // Unlike a file, a table need not have the cells that name its rows.
  std::erase_if(data.data.columns, [](const ColumnSpec& column) {
    return column.type == ColumnType::kSkip || column.type == ColumnType::kGroup;
  });
  made->columns_ = std::make_unique<const DataSpec>(std::move(data.data));
  return made;
}

Result<std::vector<float>> TableVectors::Of(std::shared_ptr<const ColumnTable> table) {
  const MemoryFor memory("the vectors of rows");
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<TableRows> rows,
                        TableRows::Make(*columns_, std::move(table), "the data"));
  const FeatureNames names = FeaturesOf(*columns_);
  std::vector<float> vectors;
  vectors.reserve(rows->num_rows() * dim());
  for (uint64_t begin = 0; begin < rows->num_rows(); begin += kRowsAtOnce) {
    const uint64_t end = std::min(begin + kRowsAtOnce, rows->num_rows());
    HDPS_ASSIGN_OR_RETURN(const Batch batch, rows->Read(begin, end));
    HDPS_ASSIGN_OR_RETURN(const std::vector<float> here, tower_->Of(batch, names));
    vectors.insert(vectors.end(), here.begin(), here.end());
  }
  return vectors;
}

}  // namespace hdps
