// Names the constants, and reads them from the benchmark's JSON.
#include "tools/plan/machine_constants.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

namespace hdps {
namespace {

// Returns a text field of an object, or "" for anything else.
std::string TextOf(const nlohmann::json& object, const char* field) {
  if (!object.is_object() || !object.contains(field) || !object[field].is_string()) return "";
  return object[field].get<std::string>();
}

Result<double> Take(const std::map<std::string, double>& values, const std::string& name) {
  const auto found = values.find(name);
  if (found == values.end()) {
    return Status(Code::kInvalidArgument,
                  "'" + name + "' is missing; make the file with hdps-bench constants --json=FILE");
  }
  if (!std::isfinite(found->second) || found->second < 0) {
    return Status(Code::kInvalidArgument, "'" + name + "' is " + std::to_string(found->second) +
                                              "; expected 0 or more: measure again");
  }
  return found->second;
}

}  // namespace

std::vector<NamedConstant> NamedConstants(MachineConstants* constants) {
  MachineConstants& c = *constants;
  std::vector<NamedConstant> all = {
      {"machine.cores", "", &c.cores},
      {"model.example", "ns", &c.model_example_ns},
      {"model.embedding_float", "ns", &c.model_embedding_float_ns},
      {"model.activation_float", "ns", &c.model_activation_float_ns},
      {"model.row_rate", "GFLOP/s", &c.model_row_gflops},
      {"model.row_float", "ns", &c.model_row_float_ns},
      {"model.gather_float", "ns", &c.model_gather_float_ns},
      {"model.merge_row", "ns", &c.model_merge_row_ns},
      {"model.merge_float", "ns", &c.model_merge_float_ns},
      {"reader.read_byte", "ns", &c.read_byte_ns},
      {"reader.scan_byte", "ns", &c.scan_byte_ns},
      {"reader.find_byte", "ns", &c.find_byte_ns},
      {"reader.draw_row", "ns", &c.draw_row_ns},
      {"reader.fetch_row", "ns", &c.fetch_row_ns},
      {"reader.dedup_key", "ns", &c.dedup_key_ns},
      {"reader.split_key", "ns", &c.split_key_ns},
      {"reader.cut_key", "ns", &c.cut_key_ns},
      {"exchange.busy_cores", "cores", &c.exchange_busy_cores},
      {"sharing.beside", "", &c.sharing_beside},
      {"sharing.lockstep", "", &c.sharing_lockstep},
      {"server.pull_row", "ns", &c.server_pull_row_ns},
      {"server.pull_float", "ns", &c.server_pull_float_ns},
      {"server.push_row", "ns", &c.server_push_row_ns},
      {"server.push_float", "ns", &c.server_push_float_ns},
      {"server.new_row", "ns", &c.server_new_row_ns},
      {"server.new_float", "ns", &c.server_new_float_ns},
      {"server.dense_pull_float", "ns", &c.server_dense_pull_float_ns},
      {"server.dense_push_float", "ns", &c.server_dense_push_float_ns},
      {"server.message", "us", &c.server_message_us},
      {"server.index_row", "bytes", &c.index_row_bytes},
      {"tier.row_back", "us", &c.tier_row_back_us},
      {"wire.byte", "ns", &c.wire_byte_ns},
      {"checkpoint.save_byte", "ns", &c.save_byte_ns},
      {"checkpoint.load_byte", "ns", &c.load_byte_ns},
      {"disk.write_byte", "ns", &c.disk_write_byte_ns},
      {"disk.read_byte", "ns", &c.disk_read_byte_ns},
      {"cluster.start", "s", &c.start_seconds},
  };
  const auto add = [&all](const std::string& name, ExchangeCost* cost) {
    all.push_back({name + ".base", "us", &cost->base_us});
    all.push_back({name + ".row", "ns", &cost->row_ns});
    all.push_back({name + ".float", "ns", &cost->float_ns});
    all.push_back({name + ".dense_float", "ns", &cost->dense_float_ns});
  };
  const std::pair<std::string, PathCosts*> paths[] = {
      {"inproc", &c.inproc}, {"local", &c.local}, {"socket", &c.socket}};
  for (const auto& [name, path] : paths) {
    add(name + "_pull", &path->pull);
    add(name + "_push", &path->push);
    RepairCost& repair = path->repair;
    all.push_back({name + "_repair.base", "us", &repair.base_us});
    all.push_back({name + "_repair.row", "ns", &repair.row_ns});
    all.push_back({name + "_repair.float", "ns", &repair.float_ns});
    all.push_back({name + "_repair.changed_row", "ns", &repair.changed_row_ns});
    all.push_back({name + "_repair.changed_float", "ns", &repair.changed_float_ns});
  }
  return all;
}

std::string ProductCase(const ProductRate& rate) {
  char name[80];
  std::snprintf(name, sizeof(name), "products_%.0fx%.0f_batch%.0f", rate.inputs, rate.units,
                rate.batch);
  return name;
}

double MachineConstants::GflopsFor(double inputs, double units, double batch) const {
  double weights = 0, sum = 0;
  for (const ProductRate& rate : products) {
    const double far = std::pow(std::log2(rate.inputs / inputs), 2) +
                       std::pow(std::log2(rate.units / units), 2) +
                       std::pow(std::log2(rate.batch / batch), 2);
    // An equal shape weighs about a hundred times as much as one twice as wide.
    constexpr double kNear = 0.01;
    const double weight = 1 / std::pow(kNear + far, 2);
    weights += weight;
    sum += weight * std::log(rate.gflops);
  }
  return weights > 0 ? std::exp(sum / weights) : 1;
}

Result<MachineConstants> ConstantsFrom(const std::map<std::string, double>& values) {
  MachineConstants constants;
  for (const NamedConstant& constant : NamedConstants(&constants)) {
    HDPS_ASSIGN_OR_RETURN(*constant.value, Take(values, constant.name));
  }
  constants.products.clear();
  for (const auto& [name, value] : values) {
    ProductRate rate;
    if (std::sscanf(name.c_str(), "products_%lfx%lf_batch%lf.", &rate.inputs, &rate.units,
                    &rate.batch) != 3) {
      continue;
    }
    HDPS_ASSIGN_OR_RETURN(rate.gflops, Take(values, name));
    if (rate.gflops > 0) constants.products.push_back(rate);
  }
  if (constants.products.empty()) HDPS_RETURN_IF_ERROR(Take(values, "products_*.rate").status());
  constants.cores = std::max(constants.cores, 1.0);
  return constants;
}

Result<MachineConstants> ReadConstants(FileSystem& files, const std::string& path) {
  constexpr uint64_t kBytesMax = 16 << 20;
  Result<std::string> text = ReadWholeFile(files, path, kBytesMax);
  if (!text.ok()) return Status(Code::kInvalidArgument, "--constants: " + text.status().message());
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  const bool whole = json.is_object() && json.contains("results") && json["results"].is_array();
  if (!whole) {
    return Status(Code::kInvalidArgument,
                  "--constants: " + path + " is not what hdps-bench constants --json=FILE writes");
  }
  std::map<std::string, double> values;
  for (const auto& result : json["results"]) {
    if (TextOf(result, "bench") != "constants") continue;
    if (!result.contains("value") || !result["value"].is_number()) continue;
    values[TextOf(result, "case") + "." + TextOf(result, "figure")] = result["value"].get<double>();
  }
  Result<MachineConstants> constants = ConstantsFrom(values);
  if (constants.ok()) return constants;
  return Status(Code::kInvalidArgument,
                "--constants: " + path + ": " + constants.status().message());
}

}  // namespace hdps
