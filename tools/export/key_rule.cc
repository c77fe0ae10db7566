// Names the salts that the parsers and the derived features use.
#include "tools/export/key_rule.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "common/base/hash.h"
#include "common/base/hex_digits.h"
#include "common/job/job_facts.h"
#include "common/job/job_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/table_slices.h"

namespace hdps {
namespace {

using Json = nlohmann::ordered_json;

std::string Salt(const std::string& key_space) { return HexDigits(HashString(key_space)); }

Json RuleOf(const DataSpec& data, const std::string& name) {
  const auto derived = std::ranges::find(data.features, name, &FeatureSpec::name);
  if (derived != data.features.end()) {
    const bool cross = derived->kind == FeatureKind::kCrossed;
    Json rule = {{"of", cross ? "cross" : "bucket"}, {"salt", Salt(name)}, {"from", derived->from}};
    if (cross) rule["hash_buckets"] = derived->hash_buckets;
    if (!cross) rule["boundaries"] = derived->boundaries;
    return rule;
  }
  const auto column = std::ranges::find(data.columns, name, &ColumnSpec::name);
  if (!HasNamedColumns(data.format) || column == data.columns.end()) {
    return {{"of", "text"}, {"salt", Salt(name)}};
  }
  Json rule = {{"of", column->vocab_size > 0 ? "id" : "text"}, {"salt", Salt(column->key_space())}};
  if (column->vocab_size > 0) rule["vocab_size"] = column->vocab_size;
  return rule;
}

}  // namespace

std::string DescribeKeys(const Job& job) {
  Json rules = Json::object();
  const std::vector<std::string> features = FeaturesOf(job.data).sparse;
  for (const std::string& name : features) rules[name] = RuleOf(job.data, name);
  for (const TableSpec& table : job.tables) {
    if (table.dense) continue;
    for (const uint32_t feature : FeaturesOfTable(job, table.name)) {
      rules[features[feature]]["tables"].push_back(table.name);
    }
  }
  return rules.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace hdps
