// The settings that split layers over the workers, and those for choosing a strategy.
#include "common/job/spec/parallel_spec.h"
#include "common/job/text/job_sections.h"
#include "common/job/text/setting_table.h"

namespace hdps {

namespace {

using enum Note;

constexpr Range kParts = {1, 4096};

Section BlockSection() {
  SettingTable<BlockSpec> block("block", "parallel.blocks[]");
  block.Add("layers", &BlockSpec::layers, "Names of its layers; or `from` and `to`.", kNoDefault,
            kPrintedUnlessDefault);
  block.Add("from", &BlockSpec::from,
            "All layers on a way from this one to that of `to`, both of them too.", kNoDefault,
            kPrintedUnlessDefault);
  block.Add("to", &BlockSpec::to, "See `from`.", kNoDefault, kPrintedUnlessDefault);
  block.Add("in_strategy", &BlockSpec::in_strategy,
            "[parts of the rows, of the columns] of what goes in, one for all or a tuple a layer "
            "of the block that reads from outside, in their order. Not given: it follows.",
            kParts, kNoDefault, kPrintedUnlessDefault);
  block.Add("out_strategy", &BlockSpec::out_strategy,
            "The same of what comes out. Not given: it follows.", kParts, kNoDefault,
            kPrintedUnlessDefault);
  block.Add("shard", &BlockSpec::shard, "The `shard` of each of its layers.", kParts, kNoDefault,
            kPrintedUnlessDefault);
  block.Add("device", &BlockSpec::device,
            "Where its layers are computed: all where model.device says.",
            OneOf{{"auto", "cpu", "cuda"}}, kPrintedUnlessDefault);
  block.Add("level", &BlockSpec::level,
            "How layers between are chosen: 0: as little as can be moves between workers. 1: they "
            "take the least memory. 2: the step takes the least time.",
            Range{0, 2}, kPrintedUnlessDefault);
  return block.Done();
}

}  // namespace

void AddStrategySettings(SettingTable<ParallelSpec>* parallel) {
  using enum ParallelMode;
  const Where sharded(&ParallelSpec::parallel_mode, {kHybrid, kSemiAuto, kAuto});
  const Where searched(&ParallelSpec::parallel_mode, {kAuto});
  parallel->AddObject("blocks", &ParallelSpec::blocks, BlockSection(),
                      "Layers that are cut together, by name; MindSpore's Cell.shard.",
                      Hashed::kNothing, kPrintedUnlessDefault);
  parallel->Add("search_mode", &ParallelSpec::search_mode,
                "dynamic_programming: the best there is by the costs. recursive_programming: "
                "faster, for models of hundreds of layers, maybe not the best. "
                "sharding_propagation: from the layers with a `shard`, or the heaviest, to their "
                "neighbours, where the least is moved.",
                searched, Hashed::kNothing, kPrintedUnlessDefault);
  parallel->AddSpelling(
      "auto_parallel_search_mode", ValueKind::kChoice, "Another way to say search_mode.",
      [](const JsonValue& value, ParallelSpec* spec) { ReadValue(value, &spec->search_mode); },
      OneOf{{"dynamic_programming", "recursive_programming", "sharding_propagation"}}, searched);
  parallel->Add("fully_use_devices", &ParallelSpec::fully_use_devices,
                "Only ways are searched in which every layer is spread over all workers: fewer, "
                "and the best may not be among them. false: layers may be computed by several "
                "workers alike.",
                searched, Hashed::kNothing, kPrintedUnlessDefault);
  parallel->Add("strategy_ckpt_save_file", &ParallelSpec::strategy_save_file,
                "A file to keep the strategy in, a line a layer, written when the job starts. A "
                "folder such as \"./\" means strategy.json in it.",
                sharded, Hashed::kNothing, kPrintedUnlessDefault);
  parallel->Add("strategy_ckpt_load_file", &ParallelSpec::strategy_load_file,
                "The strategy is taken from this file, and nothing is planned. It has to be of "
                "this model and as many workers. Sought beside the job file first. A folder means "
                "strategy.json in it.",
                sharded, Hashed::kNothing, kPrintedUnlessDefault);
  parallel->Add("worker_memory_limit", &ParallelSpec::worker_memory_limit,
                "Of one worker, for the weights, gradients and optimizer state of dense layers "
                "and for the values between layers: what needs more is not chosen. 0: any.",
                Bytes{0, 9e15}, sharded, Hashed::kNothing, kPrintedUnlessDefault);
  parallel->Add("constants", &ParallelSpec::constants_file,
                "What hdps-bench constants --json=FILE wrote, to plan by. Not given: the constants "
                "of the machine that hdps was developed on.",
                sharded, Hashed::kNothing, kPrintedUnlessDefault);
}

}  // namespace hdps
