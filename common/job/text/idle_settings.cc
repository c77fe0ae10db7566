// Settings without an effect in a job, beyond those whose records name a condition. The job trains
// without them and warns.
#include <algorithm>
#include <set>

#include "common/job/dataset_slices.h"
#include "common/job/eval_sets.h"
#include "common/job/job_facts.h"
#include "common/job/job_spec.h"
#include "common/job/model_graph.h"
#include "common/job/optimizers/delay_compensation.h"
#include "common/job/optimizers/optimizer_record.h"
#include "common/job/spec/checkpoint_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/layer_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/job/tables/joined_tables.h"
#include "common/job/text/job_sections.h"

namespace hdps {

namespace {

using Rules = std::vector<IdleRule>;
using Holds = std::function<bool(const Job& job)>;

// The program that has the model evaluates it when train.eval_every_steps says so.
bool HasNothingToEvaluate(const Job& job) {
  return IsTablesJob(job) ? job.train.eval_every_steps == 0 : EvalSetsOf(job.data).empty();
}

// Adds a rule that depends only on the job.
void Add(Rules* rules, const std::string& path, const std::string& why, const Holds& is_idle) {
  rules->push_back(
      {path, [is_idle](const JobSource&, const Job& job) { return is_idle(job); }, why});
}

// Is true if the text gives a value at the path of these keys; null counts as none.
bool Gives(const JobSource& source, std::initializer_list<const char*> keys) {
  const JsonValue* at = &source.root;
  for (const char* key : keys) {
    at = at->Find(key);
    if (at == nullptr) return false;
  }
  return at->kind != JsonValue::Kind::kNull;
}

// Is true if the job lists its tables: with layers, or alone.
bool ListsTables(const JobSource& source, const Job& job) {
  return IsTablesJob(job) || Gives(source, {"model", "layers"});
}

// Adds rules for the tables of a recipe, which are set in one place, and for listed tables.
void AddPolicyRules(Rules* rules) {
  const auto add = [rules](const std::string& key, const std::string& why,
                           const std::function<bool(const PolicySpec& policy)>& is_idle) {
    for (const bool spelled_out : {false, true}) {
      rules->push_back({(spelled_out ? "model.tables[].policy." : "model.policy.") + key,
                        [=](const JobSource& source, const Job& job) {
                          return ListsTables(source, job) == spelled_out &&
                                 std::ranges::any_of(job.tables, is_idle, &TableSpec::policy);
                        },
                        why});
    }
  };
  add("admit_sketch_bytes", "it counts only where admit_after is above 1",
      [](const PolicySpec& policy) {
        return policy.admit_sketch_bytes != PolicySpec().admit_sketch_bytes &&
               policy.admit_after == 1;
      });
  add("evict_by", "it counts only beside max_rows or max_bytes", [](const PolicySpec& policy) {
    return policy.evict_by != PolicySpec().evict_by && !policy.capped();
  });
}

// Adds rules for settings of a recipe that depend on another of its settings.
void AddRecipeRules(Rules* rules) {
  const auto add = [rules](const char* key, const char* standard, const char* other,
                           const char* wanted) {
    rules->push_back({std::string("model.") + key,
                      [=](const JobSource& source, const Job&) {
                        const JsonValue& model = *source.root.Find("model");
                        const JsonValue *given = model.Find(key), *beside = model.Find(other);
                        return given != nullptr && PlainText(*given) != standard &&
                               model.Find("layers") == nullptr &&
                               (beside == nullptr || PlainText(*beside) != wanted);
                      },
                      std::string("it counts only where ") + other + " is " + wanted});
  };
  add("manual_shapes", "[]", "slice_mode", "field_slice");
  add("column_slices", "2", "slice_mode", "table_column_slice");
  add("batch_norm_over", "part", "batch_norm", "true");
}

void AddDenseRules(Rules* rules) {
  const auto add = [rules](const char* key,
                           const std::function<bool(const TableSpec& dense)>& is_set) {
    rules->push_back({std::string("model.") + key,
                      [=](const JobSource& source, const Job& job) {
                        return Gives(source, {"model", key}) && !job.tables.empty() &&
                               job.tables.back().dense && is_set(job.tables.back()) &&
                               DenseFloats(job) == 0;
                      },
                      "the model has no dense weights"});
  };
  add("dense_loss_l1", [](const TableSpec& dense) { return dense.loss_l1 > 0; });
  add("dense_loss_l2", [](const TableSpec& dense) { return dense.loss_l2 > 0; });
}

// Adds rules for settings that act on evaluations, if there are none or they have no consequence.
void AddEvaluationRules(Rules* rules) {
  constexpr const char* kNothing = "there is nothing to evaluate";
  Add(rules, "train.eval_every_steps", kNothing,
      [](const Job& job) { return job.train.eval_every_steps > 0 && HasNothingToEvaluate(job); });
  Add(rules, "train.evals_per_epoch", kNothing,
      [](const Job& job) { return job.train.evals_per_epoch > 0 && HasNothingToEvaluate(job); });
  Add(rules, "train.eval_each_epoch",
      "it counts only where there is data to evaluate and evals_per_epoch is 0",
      [](const Job& job) {
        return !job.train.eval_each_epoch &&
               (HasNothingToEvaluate(job) || job.train.evals_per_epoch > 0);
      });
  Add(rules, "checkpoint.delta_every_steps",
      "checkpoint.every_steps saves all rows after each of these steps", [](const Job& job) {
        const CheckpointSpec& saves = job.checkpoint;
        return saves.delta_every_steps > 0 && saves.every_steps > 0 &&
               saves.delta_every_steps % saves.every_steps == 0;
      });
  Add(rules, "checkpoint.delta_every_seconds", "checkpoint.every_seconds comes as soon",
      [](const Job& job) {
        const CheckpointSpec& saves = job.checkpoint;
        return saves.every_seconds > 0 && saves.delta_every_seconds >= saves.every_seconds;
      });
  Add(rules, "checkpoint.copy_wait_s", "checkpoint.copy_to names no place for copies",
      [](const Job& job) {
        const CheckpointSpec& saves = job.checkpoint;
        return saves.copy_to.empty() && saves.copy_wait_s != CheckpointSpec().copy_wait_s;
      });
  Add(rules, "checkpoint.keep_best", kNothing,
      [](const Job& job) { return !job.checkpoint.keep_best && HasNothingToEvaluate(job); });
  const auto impatient = [rules](const std::string& key, const std::string& of,
                                 std::function<bool(const TrainSpec& train)> is_set) {
    Add(rules, "train." + key + "." + of, "train." + key + ".patience is 0",
        [is_set](const Job& job) { return is_set(job.train); });
  };
  const auto add_watch = [&](const std::string& key, auto member) {
    const auto idle = [member](auto is_set) {
      return [member, is_set](const TrainSpec& train) {
        return (train.*member).patience == 0 && is_set(train.*member);
      };
    };
    impatient(key, "metric",
              idle([](const WatchSpec& watch) { return watch.metric != WatchSpec().metric; }));
    impatient(key, "set", idle([](const WatchSpec& watch) { return !watch.set.empty(); }));
    impatient(key, "min_delta", idle([](const WatchSpec& watch) { return watch.min_delta > 0; }));
  };
  add_watch("early_stop", &TrainSpec::early_stop);
  add_watch("plateau", &TrainSpec::plateau);
  const auto plateau = [](double PlateauSpec::*number) {
    return [number](const TrainSpec& train) {
      return train.plateau.patience == 0 && train.plateau.*number != PlateauSpec().*number;
    };
  };
  impatient("plateau", "factor", plateau(&PlateauSpec::factor));
  impatient("plateau", "least", plateau(&PlateauSpec::least));
}

void AddDataRules(Rules* rules) {
  Add(rules, "data.validation_block_lines", "it counts only where validation_share is above 0",
      [](const Job& job) {
        return job.data.validation_block_lines > 0 && job.data.validation_share == 0;
      });
  Add(rules, "data.cache", "rows are read once, so none are kept in memory", [](const Job& job) {
    return job.data.cache == DataCache::kMemory && job.train.epochs == 1 &&
           job.train.eval_every_steps == 0;
  });
  Add(rules, "data.cache_path", "data.cache keeps no files", [](const Job& job) {
    const bool files = job.data.cache == DataCache::kAuto || job.data.cache == DataCache::kDisk;
    return !job.data.cache_path.empty() && !files;
  });
  Add(rules, "data.cache_share", "data.cache keeps no rows", [](const Job& job) {
    return job.data.cache == DataCache::kNone && job.data.cache_share != DataSpec().cache_share;
  });
}

void AddClusterRules(Rules* rules) {
  for (const char* key : {"balance", "balance_after_s"}) {
    rules->push_back({std::string("cluster.") + key,
                      [key](const JobSource& source, const Job& job) {
                        return Gives(source, {"cluster", key}) && job.cluster.memory_limit > 0 &&
                               job.cluster.balance == Balance::kAuto;
                      },
                      "with cluster.memory_limit no shard moves by itself"});
  }
  Add(rules, "cluster.spill_path", "it counts only beside cluster.memory_limit",
      [](const Job& job) {
        return !job.cluster.spill_path.empty() && job.cluster.memory_limit == 0;
      });
}

void AddParallelRules(Rules* rules) {
  Add(rules, "cluster.join_tables", "no tables of the job could share rows",
      [](const Job& job) { return !job.cluster.join_tables && !HasTablesToJoin(job); });
  Add(rules, "train.cache_refresh_steps", "no table has a vocab_cache_size", [](const Job& job) {
    return job.train.cache_refresh_steps > 0 &&
           std::ranges::all_of(job.tables,
                               [](const TableSpec& table) { return table.vocab_cache_size == 0; });
  });
  Add(rules, "train.loss_scale",
      "no gradient travels as fp16: parallel.wire is not fp16, and neither do dense gradients by "
      "an allreduce with gradient_fp32_sync = false",
      [](const Job& job) {
        const bool allreduces = job.parallel.dense_exchange == DenseExchange::kAllreduce;
        const bool halves =
            allreduces && !job.parallel.gradient_fp32_sync && job.parallel.wire != DType::kBf16;
        const bool at_servers = std::ranges::any_of(job.tables, [&](const TableSpec& table) {
          return !table.dense || !allreduces || DenseFloatsAtServers(job) > 0;
        });
        const bool pushes = at_servers && job.parallel.wire == DType::kFp16;
        return job.train.loss_scale != 1 && !halves && !pushes;
      });
  Add(rules, "parallel.dataset_strategy",
      "its tuples cut the examples alone, as they are cut without them, and the job has no sparse "
      "features",
      [](const Job& job) {
        return !job.parallel.dataset_slices.empty() && FeaturesOf(job.data).sparse.empty() &&
               !CutsColumns(NumericTuple(job));
      });
  Add(rules, "parallel.parallel_optimizer_config",
      "it counts only beside enable_parallel_optimizer = true", [](const Job& job) {
        return !job.parallel.optimizer.enabled && job.parallel.optimizer != OptimizerShardSpec();
      });
  Add(rules, "parallel.parallel_optimizer_config.optimizer_level",
      "a worker keeps the reduced gradient of its own part alone under level1 too",
      [](const Job& job) {
        return job.parallel.optimizer.enabled &&
               job.parallel.optimizer.level != OptimizerShardSpec().level;
      });
  rules->push_back({"parallel.parallel_optimizer_config.gradient_accumulation_shard",
                    [](const JobSource& source, const Job&) {
                      return Gives(source, {"parallel", "parallel_optimizer_config",
                                            "gradient_accumulation_shard"});
                    },
                    "gradients of train.micro_batches are added before they are reduced, so "
                    "there are none to split"});
  Add(rules, "parallel.loss_sum", "it counts only where interleave_num is above 1",
      [](const Job& job) { return job.parallel.loss_sum && job.parallel.interleave_num == 1; });
}

void AddFusionRules(Rules* rules) {
  const auto add_fusion = [rules](const std::string& kind, FusionSpec CommFusionSpec::*of,
                                  bool of_split) {
    Add(rules, "parallel.comm_fusion." + kind,
        of_split ? "it counts only beside enable_parallel_optimizer = true, and while openstate is "
                   "true"
                 : "openstate is false: every tensor travels alone",
        [=](const Job& job) {
          const CommFusionSpec& fusion = job.parallel.comm_fusion;
          return fusion.*of != FusionSpec() &&
                 (!fusion.openstate || (of_split && !job.parallel.optimizer.enabled));
        });
  };
  add_fusion("allreduce", &CommFusionSpec::allreduce, false);
  add_fusion("allgather", &CommFusionSpec::allgather, true);
  add_fusion("reducescatter", &CommFusionSpec::reducescatter, true);
}

// Adds rules for settings of single layers, of a listed graph or of a recipe.
void AddLayerRules(Rules* rules) {
  const auto add = [rules](const std::string& key, const std::string& why,
                           const std::function<bool(const Job&, const LayerSpec&)>& is_idle) {
    for (const bool spelled_out : {false, true}) {
      rules->push_back({(spelled_out ? "model.layers[]." : "model.layer_settings{}.") + key,
                        [=](const JobSource& source, const Job& job) {
                          return Gives(source, {"model", "layers"}) == spelled_out &&
                                 std::ranges::any_of(job.model.layers, [&](const LayerSpec& layer) {
                                   return is_idle(job, layer);
                                 });
                        },
                        why});
    }
  };
  add("fusion",
      "it counts only where servers do not keep the layer (dense_exchange): they take each by "
      "itself",
      [](const Job& job, const LayerSpec& layer) {
        return layer.fusion >= 0 && AtServers(job, layer);
      });
  add("dense_exchange", "parallel.dense_exchange is servers, for all layers",
      [](const Job& job, const LayerSpec& layer) {
        return layer.dense_exchange != "auto" &&
               job.parallel.dense_exchange == DenseExchange::kServers;
      });
  add("dense_target", "servers keep and update the layer, in their own memory",
      [](const Job& job, const LayerSpec& layer) {
        return layer.dense_target != "auto" && AtServers(job, layer);
      });
}

void AddStalenessRules(Rules* rules) {
  Add(rules, "train.delay_compensation", "no table at the servers has an optimizer that takes it",
      [](const Job& job) {
        const auto takes = [&job](const TableSpec& table) {
          return TakesCompensation(RecordOf(table.optimizer)) &&
                 (!table.dense || job.parallel.dense_exchange != DenseExchange::kAllreduce ||
                  DenseFloatsAtServers(job) > 0);
        };
        return job.train.mode != Mode::kSync && job.train.delay_compensation > 0 &&
               !job.tables.empty() && std::ranges::none_of(job.tables, takes);
      });
}

Rules MakeRules() {
  Rules rules;
  AddPolicyRules(&rules);
  AddRecipeRules(&rules);
  AddDenseRules(&rules);
  AddEvaluationRules(&rules);
  AddDataRules(&rules);
  AddClusterRules(&rules);
  AddParallelRules(&rules);
  AddFusionRules(&rules);
  AddLayerRules(&rules);
  AddStalenessRules(&rules);
  return rules;
}

}  // namespace

const std::vector<IdleRule>& IdleRules() {
  static const Rules& rules = *new Rules(MakeRules());
  return rules;
}

// Rows that are asked for ahead lack the worker's own pushes of the steps between.
void WarnOfRowsThatAreAlwaysOld(Job* job) {
  const TrainSpec& train = job->train;
  if (train.mode == Mode::kSync || train.lookahead == 0) return;
  const std::string ahead = "train.lookahead is " + std::to_string(train.lookahead) +
                            ", so rows are that many clocks old though no worker is slow";
  if (train.max_staleness > 0 && train.max_staleness < train.lookahead) {
    job->warnings.push_back("train.max_staleness = " + std::to_string(train.max_staleness) +
                            " leaves out many gradients: " + ahead +
                            "; give at least one clock more, or no lookahead");
  }
  if (train.staleness_rate) {
    job->warnings.push_back("train.staleness_rate lowers the rate in every step: " + ahead);
  }
}

void WarnOfIdle(const JobSource& source, Job* job) {
  WarnOfRowsThatAreAlwaysOld(job);
  for (const IdleRule& rule : IdleRules()) {
    if (rule.is_idle(source, *job)) {
      job->warnings.push_back(rule.path + " is ignored: " + rule.why);
    }
  }
}

}  // namespace hdps
