// Compares two jobs table by table and tensor by tensor.
#include "common/job/tables/init_match.h"

#include <algorithm>
#include <optional>
#include <set>

#include "common/base/outside_text.h"
#include "common/job/job_facts.h"
#include "common/job/job_spec.h"
#include "common/job/model_graph.h"
#include "common/job/optimizers/optimizer_record.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/layer_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/table_slices.h"

namespace hdps {
namespace {

constexpr char kUnused[] = "nothing of the job has this name";
constexpr char kNotThere[] = "not there: begins anew";

struct Tensor {
  std::string name;
  std::vector<uint64_t> shape;
  bool operator==(const Tensor&) const = default;
  std::string Shown() const {
    std::string text = "[";
    for (const uint64_t size : shape) text += (text == "[" ? "" : ", ") + std::to_string(size);
    return text + "]";
  }
};

// Returns the dense tensors of a job by their numbers; none if its model is a program's own.
std::vector<Tensor> TensorsOf(const Job& job) {
  GraphShape graph;
  if (IsTablesJob(job)) return {};
  if (!MeasureGraph(job.model, job.tables, FeaturesOf(job.data), &graph).empty()) return {};
  std::vector<Tensor> tensors;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    for (const LayerShape::Tensor& tensor : graph.nodes[n].shape.tensors) {
      tensors.push_back({job.model.layers[n].name + "." + tensor.part, tensor.shape});
    }
  }
  return tensors;
}

bool SameRule(const OptimizerSpec& a, const OptimizerSpec& b) {
  const OptimizerRecord &of_a = RecordOf(a), &of_b = RecordOf(b);
  return std::string_view(of_a.name) == of_b.name && of_a.state_arrays == of_b.state_arrays &&
         of_a.state_more == of_b.state_more;
}

// Describes what is taken of a table whose weights are.
std::string TakenOf(const OptimizerSpec& here, const OptimizerSpec& there) {
  const std::string name = OptimizerName(here);
  if (!SameRule(here, there)) {
    return "taken; state begins anew: " + name + " here, " + OptimizerName(there) + " there";
  }
  return RecordOf(here).StateFloats(1) > 0 ? "taken with its state of " + name : "taken";
}

std::string ShownDim(const TableSpec& table) { return "dim " + std::to_string(table.dim); }

// Returns why the rows of a table of the same name cannot be taken; empty if they can.
std::string WhyNotTaken(const Job& job, const TableSpec& here, const Job& source,
                        const TableSpec& there) {
  if (here.dim != there.dim) return "another dim";
  if (here.slice_mode != SliceMode::kField) return "";
  // The key does not tell the shard, so rows stay in the shard that they have.
  const auto shards = [](const Job& of, const TableSpec& table) {
    return FieldShards(of, table, FeaturesOfTable(of, table.name));
  };
  const bool stays = there.slice_mode == SliceMode::kField &&
                     job.cluster.shards == source.cluster.shards &&
                     FeaturesOf(job.data).sparse == FeaturesOf(source.data).sparse &&
                     shards(job, here) == shards(source, there);
  return stays ? "" : "field_slice places a row by its feature, and features are others there";
}

void MatchTables(const Job& job, const Job& source, InitMatch* match) {
  std::set<std::string> names;
  for (uint32_t t = 0; t < job.tables.size(); ++t) {
    const TableSpec& here = job.tables[t];
    if (here.dense) continue;
    names.insert(here.name);
    TakenLine line{here.name, ShownDim(here), "-", kNotThere};
    const auto there = std::ranges::find_if(source.tables, [&](const TableSpec& table) {
      return !table.dense && table.name == here.name;
    });
    if (there != source.tables.end()) {
      line.of_source = ShownDim(*there);
      const std::string why = WhyNotTaken(job, here, source, *there);
      line.taken = why.empty();
      line.result = line.taken ? TakenOf(here.optimizer, there->optimizer) : "begins anew: " + why;
    }
    if (line.taken) {
      match->tables.push_back({{t},
                               {static_cast<uint32_t>(there - source.tables.begin())},
                               SameRule(here.optimizer, there->optimizer)});
    }
    match->lines.push_back(std::move(line));
  }
  for (const TableSpec& there : source.tables) {
    if (there.dense || names.contains(there.name)) continue;
    match->lines.push_back({there.name, "-", ShownDim(there), kUnused});
  }
}

void MatchTensors(const Job& job, const Job& source, InitMatch* match) {
  const std::vector<Tensor> here = TensorsOf(job), there = TensorsOf(source);
  if (here.empty()) return;
  const TableSpec& rows = job.tables.back();
  const TableSpec* const source_rows = there.empty() ? nullptr : &source.tables.back();
  std::set<std::string> names;
  for (uint32_t t = 0; t < here.size(); ++t) {
    names.insert(here[t].name);
    TakenLine line{here[t].name, here[t].Shown(), "-", kNotThere};
    const auto found = std::ranges::find(there, here[t].name, &Tensor::name);
    if (found != there.end()) {
      line.of_source = found->Shown();
      line.taken = *found == here[t];
      line.result = line.taken ? TakenOf(rows.optimizer, source_rows->optimizer)
                               : "begins anew: another shape";
    }
    if (line.taken) match->tensors[static_cast<uint32_t>(found - there.begin())] = t;
    match->lines.push_back(std::move(line));
  }
  for (const Tensor& tensor : there) {
    if (names.contains(tensor.name)) continue;
    match->lines.push_back({tensor.name, "-", tensor.Shown(), kUnused});
  }
  if (match->tensors.empty()) return;
  match->tables.push_back({{static_cast<uint32_t>(job.tables.size() - 1)},
                           {static_cast<uint32_t>(source.tables.size() - 1)},
                           SameRule(rows.optimizer, source_rows->optimizer)});
}

}  // namespace

std::vector<std::string> TakenText(const std::vector<TakenLine>& lines) {
  size_t widths[3] = {0, 0, 0};
  const auto cells = [](const TakenLine& line) {
    return std::vector<std::string>{EscapeUntrusted(line.name), line.of_job, line.of_source};
  };
  for (const TakenLine& line : lines) {
    for (size_t c = 0; c < 3; ++c) widths[c] = std::max(widths[c], cells(line)[c].size());
  }
  std::vector<std::string> texts;
  for (const TakenLine& line : lines) {
    std::string text;
    for (size_t c = 0; c < 3; ++c) {
      const std::string cell = cells(line)[c];
      text += cell + std::string(widths[c] - cell.size() + 2, ' ');
    }
    texts.push_back(text + line.result);
  }
  return texts;
}

std::vector<uint32_t> InitMatch::TakenTensors() const {
  std::vector<uint32_t> numbers;
  for (const auto& [from, to] : tensors) numbers.push_back(to);
  std::ranges::sort(numbers);
  return numbers;
}

InitMatch MatchInit(const Job& job, const Job& source) {
  InitMatch match;
  MatchTables(job, source, &match);
  MatchTensors(job, source, &match);
  return match;
}

}  // namespace hdps
