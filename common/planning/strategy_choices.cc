// Converts the shards and blocks of a job to splits of layers.
#include "common/planning/strategy_choices.h"

#include <algorithm>

#include "common/job/dataset_slices.h"
#include "common/job/job_registry.h"
#include "common/job/job_spec.h"
#include "common/job/layer_shard.h"
#include "common/job/spec/layer_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/parallel_spec.h"

namespace hdps {
namespace {

Status Wrong(const std::string& place, const std::string& problem) {
  return {Code::kInvalidArgument, place + ": " + problem};
}

bool ReadsRowsOf(const LayerFacts& layer) { return !layer.table.empty(); }
bool ReadsNumbersOf(const LayerFacts& layer) { return layer.cut == LayerCut::kNumbers; }

class ChoiceMaker {
 public:
  ChoiceMaker(const Job& job, const JobFacts& facts, uint32_t workers)
      : job_(job), facts_(facts), workers_(workers) {
    const bool searched = job.parallel.parallel_mode == ParallelMode::kAuto;
    // A search leaves layers whole where what the job says does not go with cut ones.
    const bool data_parallel =
        job.parallel.parallel_mode == ParallelMode::kHybrid || (searched && !WhyWhole(job).empty());
    const bool all = searched && job.parallel.fully_use_devices;
    for (const LayerFacts& layer : facts.layers) {
      choices_.splits.push_back(data_parallel ? std::vector{OwnRowsSplit(workers)}
                                              : SplitsOf(layer, workers, all));
    }
    choices_.pinned.resize(facts.layers.size(), false);
    choices_.level.resize(facts.layers.size(), -1);
    inside_.resize(facts.layers.size(), false);
  }

  Result<StrategyChoices> Run() {
    for (size_t i = 0; i < facts_.layers.size(); ++i) {
      const ShardTuples& shard = job_.model.layers[i].shard;
      if (!shard.empty()) HDPS_RETURN_IF_ERROR(Pin(ShardPlace(i), i, shard));
    }
    for (size_t b = 0; b < job_.parallel.blocks.size(); ++b) HDPS_RETURN_IF_ERROR(AddBlock(b));
    HDPS_RETURN_IF_ERROR(AlignReaders());
    for (size_t i = 0; i < facts_.layers.size(); ++i) {
      if (choices_.splits[i].size() == 1 && choices_.level[i] >= 0) choices_.pinned[i] = true;
    }
    return choices_;
  }

 private:
  static std::string ShardPlace(size_t layer) {
    return "model.layers." + std::to_string(layer) + ".shard";
  }

  Status Pin(const std::string& place, size_t i, const ShardTuples& shard) {
    const LayerSpec& spec = job_.model.layers[i];
    const std::string of = ShowTuples(shard) + " of \"" + spec.name + "\": ";
    const auto read = ReadShard(spec, *RegistryOf(job_.model).layers.Find(spec.kind), shard);
    if (const auto* wrong = std::get_if<std::string>(&read)) return Wrong(place, of + *wrong);
    const auto& wanted = std::get<ShardWanted>(read);
    LayerSplit split = {1, wanted.inputs, wanted.columns};
    const uint64_t product = split.product();
    split.examples = wanted.examples;
    if (split.examples == 0) {
      split.examples = workers_ % product == 0 ? static_cast<uint32_t>(workers_ / product) : 1;
    }
    const std::string why = WhyNotSplit(facts_.layers[i], split, workers_);
    if (!why.empty()) return Wrong(place, of + why);
    if (choices_.pinned[i] && choices_.splits[i][0] != split) {
      return Wrong(place, of + "another setting says " +
                              ShowSplit(choices_.splits[i][0], workers_) + "; keep one of them");
    }
    choices_.splits[i] = {split};
    choices_.pinned[i] = true;
    return {};
  }

  // Returns the layers on all paths from one layer to another.
  std::vector<size_t> Between(size_t from, size_t to) const {
    std::vector<bool> reached(facts_.layers.size(), false), reaches = reached;
    reached[from] = reaches[to] = true;
    for (size_t i = from + 1; i < facts_.layers.size(); ++i) {
      for (const uint32_t input : facts_.layers[i].inputs)
        reached[i] = reached[i] || reached[input];
    }
    for (size_t i = to + 1; i-- > 0;) {
      if (!reaches[i]) continue;
      for (const uint32_t input : facts_.layers[i].inputs) reaches[input] = true;
    }
    std::vector<size_t> between;
    for (size_t i = 0; i < facts_.layers.size(); ++i) {
      if (reached[i] && reaches[i]) between.push_back(i);
    }
    return between;
  }

  Status AddBlock(size_t number) {
    const BlockSpec& block = job_.parallel.blocks[number];
    const std::string place = "parallel.blocks." + std::to_string(number);
    std::vector<size_t> layers;
    if (block.layers.empty()) {
      layers = Between(static_cast<size_t>(PlaceOf(facts_, block.from)),
                       static_cast<size_t>(PlaceOf(facts_, block.to)));
      if (layers.empty()) {
        return Wrong(place, "no way leads from \"" + block.from + "\" to \"" + block.to +
                                "\"; name a layer and one above it");
      }
    }
    for (const std::string& name : block.layers) {
      layers.push_back(static_cast<size_t>(PlaceOf(facts_, name)));
    }
    std::ranges::sort(layers);
    for (const size_t i : layers) {
      if (inside_[i]) {
        return Wrong(place, "\"" + facts_.layers[i].name + "\" is in another block too");
      }
      inside_[i] = true;
      if (!block.shard.empty()) {
        HDPS_RETURN_IF_ERROR(Pin(place + ".shard", i, block.shard));
        continue;
      }
      if (choices_.pinned[i]) continue;
      choices_.splits[i] = SplitsOf(facts_.layers[i], workers_, false);
      choices_.level[i] = static_cast<int>(block.level);
    }
    return PinEnds(block, place, layers);
  }

  // Keeps those splits of the block's first and last layers under which its input and output have
  // the layouts that the block requires.
  Status PinEnds(const BlockSpec& block, const std::string& place,
                 const std::vector<size_t>& layers) {
    std::vector<size_t> first, last;
    const auto in_block = [&](size_t i) { return std::ranges::binary_search(layers, i); };
    std::vector<bool> read_inside(facts_.layers.size(), false), read_outside = read_inside;
    for (size_t i = 0; i < facts_.layers.size(); ++i) {
      for (const uint32_t input : facts_.layers[i].inputs) {
        (in_block(i) ? read_inside : read_outside)[input] = true;
      }
    }
    for (const size_t i : layers) {
      if (!std::ranges::all_of(facts_.layers[i].inputs, in_block)) first.push_back(i);
      if (read_outside[i] || !read_inside[i]) last.push_back(i);
    }
    HDPS_RETURN_IF_ERROR(Keep(place + ".in_strategy", block.in_strategy, first, true));
    return Keep(place + ".out_strategy", block.out_strategy, last, false);
  }

  Status Keep(const std::string& place, const ShardTuples& tuples, const std::vector<size_t>& ends,
              bool in) {
    if (tuples.empty()) return {};
    if (tuples.size() != 1 && tuples.size() != ends.size()) {
      std::string names;
      for (const size_t i : ends) names += (names.empty() ? "" : ", ") + facts_.layers[i].name;
      return Wrong(place, std::to_string(tuples.size()) + " tuples for " +
                              std::to_string(ends.size()) + " layers (" + names +
                              "); give one for all, or one each");
    }
    for (size_t e = 0; e < ends.size(); ++e) {
      const std::vector<uint32_t>& tuple = tuples[tuples.size() == 1 ? 0 : e];
      const LayerFacts& layer = facts_.layers[ends[e]];
      std::vector<LayerSplit>& splits = choices_.splits[ends[e]];
      const auto lies_otherwise = [&](const LayerSplit& split) {
        const LayerLayouts layouts = LayoutsOf(layer.cut, split, workers_);
        const Layout& layout = in ? layouts.input : layouts.output;
        return layout.parts(AxisRole::kRows) != tuple[0] ||
               layout.parts(AxisRole::kColumns) != tuple[1] || layout.parts(AxisRole::kSums) > 1;
      };
      std::erase_if(splits, lies_otherwise);
      if (!splits.empty()) continue;
      return Wrong(place, ShowTuples({tuple}) + ": there is no split of \"" + layer.name + "\" (" +
                              layer.kind + ", width " + std::to_string(layer.width) + ") over " +
                              std::to_string(workers_) + " workers that " +
                              (in ? "takes its input so" : "gives its output so") +
                              (in ? "" : " and takes what in_strategy says") +
                              "; parts have to divide the workers, and its kind has to allow them");
    }
    return {};
  }

  // Makes all layers that read one input agree, and says whether it is cut by its columns.
  // `by_columns`: dataset_strategy cuts it so. `what`: what the layers read.
  Result<bool> Align(bool by_columns, const std::string& what, const auto& reads) {
    std::string said = "parallel.dataset_strategy";
    std::vector<size_t> readers;
    for (size_t i = 0; i < facts_.layers.size(); ++i) {
      if (!reads(facts_.layers[i])) continue;
      readers.push_back(i);
      const bool wants = choices_.pinned[i] && choices_.splits[i][0].columns > 1;
      if (wants && !by_columns) said = ShardPlace(i);
      by_columns = by_columns || wants;
    }
    const std::string alike = "layers that read " + what + " have to be cut alike, and ";
    const LayerSplit split = by_columns ? LayerSplit{.columns = workers_} : OwnRowsSplit(workers_);
    for (const size_t i : readers) {
      const LayerFacts& layer = facts_.layers[i];
      const std::string name = "\"" + layer.name + "\"";
      if (choices_.pinned[i] && choices_.splits[i][0] != split) {
        return Wrong(said, alike + name + " is to be " +
                               ShowSplit(choices_.splits[i][0], workers_) +
                               "; cut all by their features, or none");
      }
      if (const std::string why = WhyNotSplit(layer, split, workers_); !why.empty()) {
        return Wrong(said, alike + name + " cannot: " + why);
      }
      const std::vector<LayerSplit>& able = choices_.splits[i];
      if (choices_.level[i] >= 0 && std::ranges::find(able, split) == able.end()) {
        return Wrong(said, alike + "the block of " + name + " does not let it be " +
                               ShowSplit(split, workers_) + "; leave it out of the block");
      }
      choices_.splits[i] = {split};
      choices_.pinned[i] = choices_.pinned[i] || by_columns;
    }
    return by_columns;
  }

  Status AlignReaders() {
    HDPS_ASSIGN_OR_RETURN(const DatasetCuts cuts, DatasetCutsOf(job_, workers_));
    HDPS_RETURN_IF_ERROR(Align(cuts.features, "rows", ReadsRowsOf).status());
    HDPS_ASSIGN_OR_RETURN(const bool numbers,
                          Align(cuts.numbers, "numeric columns", ReadsNumbersOf));
    if (numbers) PinSummands();
    std::vector<LayerSplit> first;
    for (const std::vector<LayerSplit>& splits : choices_.splits) first.push_back(splits[0]);
    const std::string why = WhyNotReaders(facts_, first, workers_);
    return why.empty() ? Status()
                       : Wrong(cuts.numbers ? "parallel.dataset_strategy" : "model.layers", why);
  }

  // Cuts the inputs of dense layers that read numeric columns like these, if nothing names the
  // layers: then each worker has a summand of their products, and no column moves.
  void PinSummands() {
    for (size_t i = 0; i < facts_.layers.size(); ++i) {
      const LayerFacts& layer = facts_.layers[i];
      if (layer.cut != LayerCut::kMatrix || choices_.pinned[i] || choices_.level[i] >= 0) continue;
      if (!ReadsNumbersOf(facts_.layers[layer.inputs[0]])) continue;
      choices_.splits[i] = {LayerSplit{.inputs = workers_}};
      choices_.pinned[i] = true;
    }
  }

  const Job& job_;
  const JobFacts& facts_;
  const uint32_t workers_;
  StrategyChoices choices_;
  std::vector<bool> inside_;  // For each layer: it is inside some block.
};

}  // namespace

std::string WhyWhole(const Job& job) {
  if (job.parallel.dense_exchange == DenseExchange::kServers) {
    return "parallel.dense_exchange is servers, which hold whole layers";
  }
  const CutConflict conflict = ConflictWithCuts(job);
  return conflict.setting.empty() ? "" : "of " + conflict.setting + ": " + conflict.problem;
}

Result<StrategyChoices> ChoicesOf(const Job& job, const JobFacts& facts, uint32_t workers) {
  return ChoiceMaker(job, facts, workers).Run();
}

Result<DatasetCuts> DatasetCutsOf(const Job& job, uint32_t workers) {
  const ShardTuples& slices = job.parallel.dataset_slices;
  if (slices.empty()) return DatasetCuts();
  const auto wrong = [&](const std::string& problem) {
    return Wrong("parallel.dataset_strategy", ShowTuples(slices) + ": " + problem);
  };
  bool cuts = false;
  for (const std::vector<uint32_t>& tuple : slices) {
    for (const uint32_t parts : tuple) {
      cuts = cuts || parts > 1;
      if (parts == 1 || parts == workers) continue;
      return wrong(std::to_string(parts) + " parts, and there are " + std::to_string(workers) +
                   " workers; give as many");
    }
  }
  if (workers > 1 && !cuts) {
    return wrong(
        "this cuts nothing; say full_batch where every worker is to have all examples, "
        "or leave it out");
  }
  return DatasetCuts{CutsColumns(SparseTuple(job)), CutsColumns(NumericTuple(job))};
}

std::string WhyNotReaders(const JobFacts& facts, const std::vector<LayerSplit>& splits,
                          uint32_t workers) {
  const auto shown = [&](size_t i) {
    return "\"" + facts.layers[i].name + "\" (" + ShowSplit(splits[i], workers) + ")";
  };
  std::optional<size_t> rows, numbers;  // The first layers that read them.
  for (size_t i = 0; i < splits.size(); ++i) {
    const bool of_rows = ReadsRowsOf(facts.layers[i]);
    if (!of_rows && !ReadsNumbersOf(facts.layers[i])) continue;
    std::optional<size_t>& first = of_rows ? rows : numbers;
    if (!first) first = i;
    if ((splits[*first].columns > 1) == (splits[i].columns > 1)) continue;
    return shown(*first) + " and " + shown(i) + " read " + (of_rows ? "rows" : "numeric columns") +
           ", and have to be cut alike: all by their features, or none";
  }
  if (!rows || !numbers || splits[*numbers].columns == 1 || splits[*rows].columns > 1) return "";
  return shown(*numbers) + " reads its columns of all examples, and " + shown(*rows) +
         " the rows of its own examples; cut the sparse features too";
}

}  // namespace hdps
