// Settings that suit the size of the data; what is left out is a default that does.
#include "tools/prepare/prepared_job.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace hdps {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint32_t kDim = 8;
constexpr double kKeyBytes = 24;  // Of a row: its key, its place in the index, what is spare there.
constexpr double kFtrlFloats = 3;  // A weight with its state.
constexpr double kAdamFloats = 3;

bool HasWide(const std::string& model) {
  return model == "wide_deep" || model == "deepfm" || model == "logistic";
}
bool HasDeep(const std::string& model) { return model != "logistic" && model != "mlp"; }

std::string BucketName(const ColumnPlan& column) { return column.spec.name + "_range"; }

Json ColumnJson(const ColumnSpec& spec) {
  Json column = {{"name", spec.name}};
  if (spec.type != ColumnType::kCategorical) column["type"] = WordOf(spec.type);
  if (spec.type == ColumnType::kMulti) column["separator"] = spec.separator;
  if (!spec.vocabulary.empty()) column["vocabulary"] = spec.vocabulary;
  if (spec.type == ColumnType::kLabel && !spec.positive.empty()) column["positive"] = spec.positive;
  if (spec.transform != Transform::kNone) column["transform"] = WordOf(spec.transform);
  if (spec.transform == Transform::kStandardize) {
    column["mean"] = spec.mean;
    column["scale"] = spec.scale;
  }
  return column;
}

Json DataJson(const DataProfile& profile, const DataPlan& plan, const JobWish& wish) {
  const DataLayout& layout = profile.layout;
  Json data = {{"format", WordOf(layout.format)}, {"train", wish.train}};
  if (!wish.eval.empty()) data["eval"] = wish.eval;
  if (wish.validation_share > 0) data["validation_share"] = wish.validation_share;
  if (layout.header) data["header"] = true;
  const bool csv = layout.format == DataFormat::kCsv;
  if (csv && layout.delimiter != ",") data["delimiter"] = layout.delimiter;
  if (csv && !plan.missing.empty()) data["missing"] = plan.missing;
  if (csv && !layout.comment.empty()) data["comment"] = layout.comment;
  if (layout.format == DataFormat::kLibffm || layout.format == DataFormat::kLibfm) {
    data["num_fields"] = profile.columns.size() - 1;
  }
  const uint64_t bad_rows = std::max(plan.bad_rows, plan.eval_bad_rows);
  if (bad_rows > 0) data["max_bad_rows"] = bad_rows;
  Json features = Json::array();
  for (const ColumnPlan& column : plan.columns) {
    if (csv) data["columns"].push_back(ColumnJson(column.spec));
    if (column.boundaries.empty()) continue;
    features.push_back({{"name", BucketName(column)},
                        {"kind", "bucketized"},
                        {"from", Json::array({column.spec.name})},
                        {"boundaries", column.boundaries}});
  }
  if (!features.empty()) data["features"] = features;
  return data;
}

Json ModelJson(const DataPlan& plan, const JobWish& wish) {
  Json model = {{"type", wish.model}};
  if (HasDeep(wish.model)) model["embedding_dim"] = kDim;
  if (wish.model != "logistic") model["hidden"] = {64, 32};
  if (HasWide(wish.model)) {
    model["wide_optimizer"] = {{"kind", "ftrl"},
                               {"learning_rate", 0.1},
                               {"l1", 0.0001},
                               {"l2", 0.0001},
                               {"initial_accumulator", 0.1}};
  }
  if (HasDeep(wish.model)) {
    model["deep_optimizer"] = {{"kind", "lazy_adam"}, {"learning_rate", 0.001}};
    model["embedding_init"] = {{"kind", "normal"}, {"scale", 0.05}};
  }
  model["dense_optimizer"] = {{"kind", "adam"}, {"learning_rate", 0.001}};
  if (plan.admit_twice) model["policy"] = {{"admit_after", 2}};
  return model;
}

// Some hundred steps at least, and no more passes than small data need.
Json TrainJson(uint64_t rows) {
  constexpr uint64_t kSmall = 10000, kMiddle = 200000, kLarge = 2000000;
  if (rows < kSmall) return {{"batch_size", 64}, {"epochs", 8}};
  if (rows < kMiddle) return {{"batch_size", 256}, {"epochs", 4}};
  if (rows < kLarge) return {{"batch_size", 1024}, {"epochs", 2}};
  return {{"batch_size", 4096}, {"epochs", 1}};
}

}  // namespace

std::string PreparedJob(const DataProfile& profile, const DataPlan& plan, const JobWish& wish) {
  const Json job = {{"name", wish.name},
                    {"data", DataJson(profile, plan, wish)},
                    {"model", ModelJson(plan, wish)},
                    {"train", TrainJson(profile.rows)},
                    {"parallel", {{"gradients_mean", true}}}};
  return job.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

TableEstimate EstimateTables(const DataPlan& plan, const JobWish& wish) {
  const double rows = plan.admit_twice ? plan.keys_twice : plan.keys;
  TableEstimate estimate;
  if (HasWide(wish.model)) {
    estimate.rows += rows;
    estimate.bytes += rows * (kKeyBytes + sizeof(float) * kFtrlFloats);
  }
  if (HasDeep(wish.model)) {
    estimate.rows += rows;
    estimate.bytes += rows * (kKeyBytes + sizeof(float) * kAdamFloats * kDim);
  }
  return estimate;
}

}  // namespace hdps
