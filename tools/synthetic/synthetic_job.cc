// Writes job files as a person would, with settings that fit these data.
#include "tools/synthetic/synthetic_job.h"

#include <nlohmann/json.hpp>

#include "tools/synthetic/synthetic_digits.h"

namespace hdps {
namespace {

using Json = nlohmann::ordered_json;

// Learns generated logs of ten thousand rows or more in a few epochs.
Json Rule() { return {{"kind", "lazy_adam"}, {"learning_rate", 0.006}}; }

Json ModelOf(TeacherFamily family) {
  const auto deep = [](const char* type) {
    return Json{{"type", type},
                {"embedding_dim", 8},
                {"hidden", {64, 32}},
                {"deep_optimizer", Rule()},
                {"dense_optimizer", Rule()}};
  };
  const auto wide_and_deep = [&deep](const char* type) {
    Json model = deep(type);
    model["wide_optimizer"] = Rule();
    return model;
  };
  switch (family) {
    case TeacherFamily::kLinear:
      return {{"type", "logistic"}, {"wide_optimizer", Rule()}, {"dense_optimizer", Rule()}};
    case TeacherFamily::kPairwise:
      return wide_and_deep("deepfm");
    case TeacherFamily::kCrosses:
      return deep("dcn_v2");
    case TeacherFamily::kDot:
      return deep("dlrm");
    case TeacherFamily::kPooled:
      return wide_and_deep("nfm");
    case TeacherFamily::kFieldPairs:
      return wide_and_deep("fibinet");
    case TeacherFamily::kTriples:
      return wide_and_deep("xdeepfm");
    case TeacherFamily::kWideDeep:
      break;
  }
  return wide_and_deep("wide_deep");
}

std::string Text(const Json& job) { return job.dump(2) + "\n"; }

}  // namespace

std::string JobOfLog(const SyntheticLogSpec& spec) {
  return Text({{"name", "generated_log"},
               {"data",
                {{"format", "criteo"},
                 {"train", Json::array({"train.tsv"})},
                 {"eval", Json::array({"eval.tsv"})}}},
               {"model", ModelOf(spec.family)},
               {"train", {{"batch_size", 256}, {"epochs", 2}}},
               {"parallel", {{"gradients_mean", true}}}});
}

std::string JobOfDigits(const SyntheticDigitsSpec& spec) {
  Json data = {{"format", spec.idx ? "idx" : "csv"},
               {"train", Json::array({DigitsFile(spec, "train")})},
               {"eval", Json::array({DigitsFile(spec, "eval")})}};
  data["columns"] = {{{"name", "digit"}, {"type", "label"}},
                     {{"name", "pixel"},
                      {"type", "numeric"},
                      {"transform", "standardize"},
                      {"mean", 33.3},
                      {"scale", 78.6},
                      {"repeat", kDigitPixels}}};
  Json parallel = {{"gradients_mean", true}};
  if (spec.idx) parallel["dense_exchange"] = "allreduce";
  return Text({{"name", "generated_digits"},
               {"data", data},
               {"model",
                {{"type", "mlp"},
                 {"hidden", {512, 512}},
                 {"classes", 10},
                 {"dense_optimizer", {{"kind", "sgd"}, {"learning_rate", 0.01}}}}},
               {"train", {{"batch_size", spec.idx ? 256 : 32}, {"epochs", 1}}},
               {"parallel", parallel}});
}

}  // namespace hdps
