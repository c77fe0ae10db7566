// Finds key, shard and row from an operator's text.
#include "tools/checkpoints/inspect_row.h"

#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <optional>
#include <vector>

#include "common/base/hash.h"
#include "common/base/nearest_name.h"
#include "common/base/outside_text.h"
#include "common/base/shard_map.h"
#include "common/job/job_facts.h"
#include "common/job/optimizers/optimizer_record.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/process/terminal.h"
#include "embedding/table.h"
#include "tools/checkpoints/opened_checkpoint.h"
#include "tools/scoring/checkpoint_model.h"
#include "worker/data/number.h"
#include "worker/data/row.h"

namespace hdps {
namespace {

Status Wrong(const std::string& what) { return {Code::kInvalidArgument, "--row: " + what}; }

// Returns the names, as many as a message has room for.
std::string Listed(const std::vector<std::string>& names) {
  constexpr size_t kListedMax = 10;
  std::string list;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i == kListedMax) return list + ", ...";
    list += (i == 0 ? "" : ", ") + names[i];
  }
  return list;
}

// Checks that values of `feature` have keys. Requires: it is not derived.
Status CheckHasRows(const DataSpec& data, const std::string& feature) {
  FeatureNames names = FeaturesOf(data);
  std::erase_if(names.sparse, [&](const std::string& name) {
    return std::ranges::count(data.features, name, &FeatureSpec::name) > 0;
  });
  // The data of a job of tables alone are its program's.
  if (std::ranges::count(names.sparse, feature) > 0 || FeaturesOf(data).sparse.empty()) return {};
  const std::string there = names.sparse.empty()
                                ? "all features with rows are made of other columns, so give the "
                                  "key's number"
                                : "features with rows are " + Listed(names.sparse);
  const auto column = std::ranges::find(data.columns, feature, &ColumnSpec::name);
  const bool numeric = std::ranges::count(names.numeric, feature) > 0;
  if (column == data.columns.end() && !numeric) {
    return Wrong("there is no column \"" + feature + "\"" + DidYouMean(feature, names.sparse) +
                 "; " + there);
  }
  const std::string type(WordOf(numeric ? ColumnType::kNumeric : column->type));
  return Wrong("\"" + feature + "\" is a " + type + " column and has no rows; " + there);
}

// Returns the key that `text` names: its number, or FEATURE=VALUE. The key of a value depends on
// the feature's column, or on the vocabulary that several columns share.
Result<Key> KeyOf(const Job& job, const TableSpec& table, const std::string& text) {
  Key key = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), key);
  if (error == std::errc() && end == text.data() + text.size()) return key;
  if (table.dense) {
    return Wrong("\"" + text + "\" is no row of table \"" + table.name +
                 "\", which holds the weights of layers by number: write " + table.name + ":0");
  }
  const size_t equals = text.find('=');
  if (equals == std::string::npos) {
    return Wrong("\"" + text + "\" is no key: write its number, or FEATURE=VALUE");
  }
  const std::string feature = text.substr(0, equals);
  for (const auto& derived : job.data.features) {
    if (derived.name == feature) {
      return Wrong(
          "\"" + feature +
          "\" is made of other columns, so its values have no words; give the key's number");
    }
  }
  const std::string_view value = std::string_view(text).substr(equals + 1);
  std::string space = feature;
  uint64_t vocab_size = 0;
  HDPS_RETURN_IF_ERROR(CheckHasRows(job.data, feature));
  for (const auto& column : job.data.columns) {
    if (column.name != feature) continue;
    space = column.key_space();
    vocab_size = column.vocab_size;
  }
  if (vocab_size == 0) return FeatureKey(HashString(space), value);
  const std::optional<uint64_t> id = ParseId(value);
  if (id && *id < vocab_size) return IdKey(HashString(space), *id);
  return Wrong("\"" + std::string(value) + "\" is no id of \"" + feature +
               "\" with a row: expected a whole number from 0 to " +
               std::to_string(vocab_size - 1));
}

void PrintFloats(const char* name, std::span<const float> values) {
  PrintOut("%-11s", name);
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0 && i % 8 == 0) PrintOut("\n%-11s", "");
    PrintOut(" %.9g", static_cast<double>(values[i]));
  }
  PrintOut("\n");
}

}  // namespace

Status PrintRow(FileSystem& files, const std::string& path, WhichCheckpoint which,
                const std::string& which_row) {
  HDPS_ASSIGN_OR_RETURN(const OpenedCheckpoint opened, OpenWithJob(files, path, which));
  const Job& job = opened.job;
  const size_t colon = which_row.find(':');
  const std::string name = which_row.substr(0, colon);
  std::vector<std::string> known;
  for (const TableSpec& table : job.tables) known.push_back(table.name);
  const auto at = std::ranges::find(known, name);
  if (at == known.end()) {
    return Wrong("there is no table \"" + name + "\"" + DidYouMean(name, known) +
                 "; write TABLE:KEY with one of " + Listed(known));
  }
  const TableSpec& spec = job.tables[static_cast<size_t>(at - known.begin())];
  if (colon == std::string::npos) {
    return Wrong("\"" + name + "\" has no key: write TABLE:KEY, such as " + name +
                 (spec.dense ? ":0" : ":FEATURE=VALUE"));
  }
  HDPS_ASSIGN_OR_RETURN(const Key key, KeyOf(job, spec, which_row.substr(colon + 1)));
  const uint32_t shards = opened.found.manifest.num_shards;
  if (spec.shard_by == ShardBy::kGiven) {
    return Wrong("rows of table \"" + name + "\" are cut into parts of several shards");
  }
  const ShardId shard = ShardOf(key, spec.shard_by, shards);
  HDPS_ASSIGN_OR_RETURN(std::vector<TableSlice> slices, ReadShard(files, opened.found, job, shard));
  TableSlice& slice = slices[static_cast<size_t>(at - known.begin())];

  const uint32_t row_floats = slice.dim() + slice.state_floats();
  std::vector<float> row(row_floats);
  bool there = false;
  HDPS_RETURN_IF_ERROR(
      slice.VisitRows(4096, [&](std::span<const Key> keys, std::span<const float>) {
        there = there || std::ranges::binary_search(keys, key);
        return Status();
      }));
  slice.Read(std::span(&key, 1), row_floats, row);
  PrintOut("row         %s:%" PRIu64 ", shard %u of %u\n", EscapeUntrusted(name).c_str(), key,
           shard.value, shards);
  PrintOut("checkpoint  %s\n", opened.found.folder.c_str());
  PrintOut("%-11s %s\n", there ? "trained" : "not there",
           there ? "it has been updated" : "no step has updated it: so it would begin");
  PrintFloats("weights", std::span(row).first(slice.dim()));
  if (slice.state_floats() > 0) {
    PrintOut("state       %u floats: those of its optimizer, %s, and of its policy\n",
             slice.state_floats(), OptimizerName(spec.optimizer));
    PrintFloats("", std::span(row).subspan(slice.dim()));
  }
  return {};
}

}  // namespace hdps
