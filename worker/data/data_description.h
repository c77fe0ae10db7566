// Describes data in words: formats, columns, labels, keys.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "worker/data/batch.h"

namespace hdps {

struct ColumnSpec;
struct DataSpec;

// "1,234"
std::string Whole(size_t number);
// "1 file", "2 files"
std::string Counted(size_t number, const std::string& what);

// Returns the label's column; null if the format does not name its columns.
const ColumnSpec* LabelColumn(const DataSpec& data);
// Returns the columns in the order of the file's cells; none if entries carry their own index.
std::vector<std::string> ColumnNames(const DataSpec& data);

// "2 files of format csv: label 'income' (1 where it is '>50K', else 0), 5 numeric columns, 8
// sparse features"
std::string DescribeFormat(const DataSpec& data, size_t num_files);
// "a table of 1,000 rows: label ..."
std::string DescribeTable(const DataSpec& data, size_t num_rows);
// "'<=50K' (759), '>50K' (241)"
std::string DescribeCounts(const std::map<std::string, uint64_t>& counts);
// "1 key a row in 25 sparse features, 'tags' 2.1 keys a row (0 to 5)". Requires: a row.
std::string DescribeKeys(const Batch& batch, const std::vector<std::string>& names);

}  // namespace hdps
