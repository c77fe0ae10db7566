// Reads and writes strategy files, and reads the measured constants for planning.
#include "common/job/strategy/strategy_file.h"
#include "common/base/hex_digits.h"

#include <algorithm>
#include <optional>

#include "common/job/text/job_source.h"
#include "common/platform/output_file.h"

namespace hdps {

namespace {

using Kind = JsonValue::Kind;
constexpr uint64_t kFileBytesMax = 16u << 20;
constexpr uint64_t kPartsMax = 4096;
constexpr const char* kFileName = "strategy.json";  // In a folder that is given in place of a file.

Status CheckParts(const JobSource& source, const std::string& place, const JsonValue* value) {
  if (value == nullptr) return Refuse(source, place, "it is missing; give a number of parts");
  if (value->kind == Kind::kInteger && !value->negative && value->magnitude >= 1 &&
      value->magnitude <= kPartsMax) {
    return {};
  }
  return Refuse(
      source, place,
      PrintJsonLine(*value) + " is not a whole number from 1 to " + std::to_string(kPartsMax));
}

Status CheckText(const JobSource& source, const std::string& place, const JsonValue* value) {
  if (value != nullptr && value->kind == Kind::kText) return {};
  return Refuse(source, place, value == nullptr ? "it is missing" : "it is no text");
}

Status CheckKeys(const JobSource& source, const std::string& place, const JsonValue& object,
                 const std::vector<std::string>& known) {
  std::string list;
  for (const std::string& key : known) list += (list.empty() ? "" : ", ") + key;
  if (object.kind != Kind::kObject) {
    return Refuse(source, place, "it is no object with " + list);
  }
  for (const std::string& name : object.names) {
    if (std::ranges::find(known, name) != known.end()) continue;
    return Refuse(source, place.empty() ? name : place + "." + name,
                  "there is no such key; known are " + list);
  }
  return {};
}

Status ReadLayer(const JobSource& source, const std::string& place, const JsonValue& layer,
                 KeptStrategy* kept) {
  const std::vector<std::string> keys = {"name", "kind", "examples", "inputs", "columns"};
  HDPS_RETURN_IF_ERROR(CheckKeys(source, place, layer, keys));
  for (const char* key : {"name", "kind"}) {
    HDPS_RETURN_IF_ERROR(CheckText(source, place + "." + key, layer.Find(key)));
  }
  for (const char* key : {"examples", "inputs", "columns"}) {
    HDPS_RETURN_IF_ERROR(CheckParts(source, place + "." + key, layer.Find(key)));
  }
  const auto parts = [&](const char* key) {
    return static_cast<uint32_t>(layer.Find(key)->magnitude);
  };
  kept->names.push_back(layer.Find("name")->text);
  kept->kinds.push_back(layer.Find("kind")->text);
  kept->strategy.layers.push_back({parts("examples"), parts("inputs"), parts("columns")});
  return {};
}

}  // namespace

std::string PrintStrategyFile(const KeptStrategy& kept) {
  std::string text = "{\n  \"workers\": " + std::to_string(kept.strategy.workers) +
                     ",\n  \"graph\": \"" + HexDigits(kept.graph) + "\",\n  \"layers\": [";
  for (size_t i = 0; i < kept.names.size(); ++i) {
    const LayerSplit& split = kept.strategy.layers[i];
    JsonValue layer = JsonValue::Object();
    layer.Set("name", JsonValue::Text(kept.names[i]));
    layer.Set("kind", JsonValue::Text(kept.kinds[i]));
    layer.Set("examples", JsonValue::Integer(split.examples));
    layer.Set("inputs", JsonValue::Integer(split.inputs));
    layer.Set("columns", JsonValue::Integer(split.columns));
    text += (i == 0 ? "\n    " : ",\n    ") + PrintJsonLine(layer);
  }
  return text + "\n  ]\n}\n";
}

Result<KeptStrategy> ParseStrategyFile(const std::string& text, const std::string& path) {
  JobSource source{path, {}};
  HDPS_ASSIGN_OR_RETURN(source.root, ParseJson(text, path));
  const JsonValue& root = source.root;
  HDPS_RETURN_IF_ERROR(CheckKeys(source, "", root, {"workers", "graph", "layers"}));
  HDPS_RETURN_IF_ERROR(CheckParts(source, "workers", root.Find("workers")));
  HDPS_RETURN_IF_ERROR(CheckText(source, "graph", root.Find("graph")));
  KeptStrategy kept;
  kept.path = path;
  kept.strategy.workers = static_cast<uint32_t>(root.Find("workers")->magnitude);
  const std::string& graph = root.Find("graph")->text;
  unsigned long long hash = 0;
  int end = 0;
  const bool whole = std::sscanf(graph.c_str(), "%16llx%n", &hash, &end) == 1;
  if (!whole || static_cast<size_t>(end) != graph.size()) {
    return Refuse(source, "graph", Quoted(graph) + " is not the 16 digits of a model's graph");
  }
  kept.graph = hash;
  const JsonValue* layers = root.Find("layers");
  if (layers == nullptr || layers->kind != Kind::kList) {
    return Refuse(source, "layers", "it has to be a list, an object a layer");
  }
  for (size_t i = 0; i < layers->items.size(); ++i) {
    HDPS_RETURN_IF_ERROR(ReadLayer(source, "layers." + std::to_string(i), layers->items[i], &kept));
  }
  return kept;
}

std::string StrategyFileAt(FileSystem& files, const std::string& path) {
  const std::string last = path.substr(path.rfind('/') + 1);
  const bool is_folder = last.empty() || last == "." || last == ".." || files.List(path).ok();
  return is_folder && !path.empty() ? JoinPath(path, kFileName) : path;
}

Result<KeptStrategy> ReadStrategyFile(FileSystem& files, const std::string& path) {
  const std::string file = StrategyFileAt(files, path);
  Result<std::string> text = ReadWholeFile(files, file, kFileBytesMax);
  if (!text.ok()) return Status(Code::kInvalidArgument, text.status().message());
  return ParseStrategyFile(*text, file);
}

Status WriteStrategyFile(FileSystem& files, const std::string& path, const KeptStrategy& kept) {
  return WriteNamedFile(files, path, PrintStrategyFile(kept));
}

Result<StepRates> ReadStepRates(FileSystem& files, const std::string& path) {
  Result<std::string> text = ReadWholeFile(files, path, kFileBytesMax);
  if (!text.ok()) return Status(Code::kInvalidArgument, text.status().message());
  JobSource source{path, {}};
  HDPS_ASSIGN_OR_RETURN(source.root, ParseJson(*text, path));
  const JsonValue* results = source.root.Find("results");
  const Status not_constants =
      Refuse(source, "results", "this is not what hdps-bench constants --json=FILE writes");
  if (results == nullptr || results->kind != Kind::kList) return not_constants;
  StepRates rates;
  std::vector<double> gflops;
  for (const JsonValue& result : results->items) {
    const JsonValue* of = result.Find("case");
    const JsonValue* figure = result.Find("figure");
    const JsonValue* value = result.Find("value");
    if (of == nullptr || figure == nullptr || value == nullptr || !(value->number > 0)) continue;
    const std::string name = of->text + "." + figure->text;
    if (name.starts_with("products_") && name.ends_with(".rate")) gflops.push_back(value->number);
    if (name == "wire.byte") rates.link_bytes_per_second = 1e9 / value->number;
    if (name == "server.push_float") rates.update_float_seconds = 1e-9 * value->number;
    if (name == "socket_pull.row") rates.row_seconds = 1e-9 * value->number;
    if (name == "socket_pull.float") rates.row_float_seconds = 1e-9 * value->number;
    // One float is read and one is written.
    if (name == "model.activation_float") rates.memory_bytes_per_second = 8e9 / value->number;
    if (name == "socket_pull.base") rates.exchange_seconds = 1e-6 * value->number / 2;
  }
  if (gflops.empty()) return not_constants;
  std::ranges::nth_element(gflops, gflops.begin() + static_cast<ptrdiff_t>(gflops.size() / 2));
  rates.flops_per_second = 1e9 * gflops[gflops.size() / 2];
  return rates;
}

}  // namespace hdps
