// Compares the tables of a job: what reads them, and what decides about their rows.
#include "common/job/tables/joined_tables.h"

#include <functional>

#include "common/job/job_facts.h"
#include "common/job/job_spec.h"
#include "common/job/optimizers/optimizer_record.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/table_slices.h"

namespace hdps {
namespace {

// Returns what keeps the rows of a table from being shared with any other; empty if nothing does.
std::string WhyAlone(const TableSpec& table) {
  const PolicySpec& policy = table.policy;
  const std::string name = "'" + table.name + "' ";
  if (table.shard_by == ShardBy::kGiven) return name + "is cut by feature or column";
  if (table.vocab_cache_size > 0) return name + "keeps rows at workers (vocab_cache_size)";
  if (RecordOf(table.optimizer).whole_tensors) return name + "has an optimizer of whole tensors";
  if (policy.admit_after > 1) return name + "counts keys of its own (admit_after)";
  if (policy.admit_probability < 1) return name + "admits by chance (admit_probability)";
  if (policy.max_bytes > 0) return name + "is capped by bytes (max_bytes)";
  if (policy.capped() && policy.evict_by == EvictBy::kNorm) {
    return name + "evicts by the norm of its own weights";
  }
  return "";
}

// Returns what keeps the rows of `b` from being shared with those of `a`; empty if nothing does.
// Requires: the same features read both.
std::string WhyApart(const TableSpec& a, const TableSpec& b) {
  for (const TableSpec* table : {&a, &b}) {
    if (std::string why = WhyAlone(*table); !why.empty()) return why;
  }
  if (a.slice_mode != b.slice_mode || a.shard_by != b.shard_by) return "their slice_mode differs";
  if (a.policy.evict_after_steps != b.policy.evict_after_steps) {
    return "their evict_after_steps differs";
  }
  if (a.policy.evict_after_seconds != b.policy.evict_after_seconds) {
    return "their evict_after_seconds differs";
  }
  if (a.policy.max_rows != b.policy.max_rows) return "their max_rows differs";
  if (a.policy.capped() && a.policy.evict_by != b.policy.evict_by) return "their evict_by differs";
  return "";
}

// Calls visit(first, t) for tables `first` < `t` with the same features, for each `t` with the
// first that it may share rows with or, if there is none, with the last.
using Visit = std::function<void(uint32_t first, uint32_t t, const std::string& why_apart)>;
void ForEachPair(const Job& job, const Visit& visit) {
  if (IsTablesJob(job)) return;  // Its program may update each table for keys of its own.
  std::vector<std::vector<uint32_t>> features;
  for (const TableSpec& table : job.tables) features.push_back(FeaturesOfTable(job, table.name));
  for (uint32_t t = 0; t < job.tables.size(); ++t) {
    if (job.tables[t].dense || features[t].empty()) continue;
    std::string why;
    uint32_t other = t;
    for (uint32_t first = 0; first < t; ++first) {
      if (features[first] != features[t] || job.tables[first].dense) continue;
      other = first;
      why = WhyApart(job.tables[first], job.tables[t]);
      if (why.empty()) break;
    }
    if (other != t) visit(other, t, why);
  }
}

}  // namespace

std::vector<uint32_t> TablesThatShareRows(const Job& job) {
  std::vector<uint32_t> first_of_group;
  for (uint32_t t = 0; t < job.tables.size(); ++t) first_of_group.push_back(t);
  if (!job.cluster.join_tables) return first_of_group;
  ForEachPair(job, [&](uint32_t first, uint32_t t, const std::string& why_apart) {
    // WhyApart is an equivalence, so what the first shares is shared by all.
    if (why_apart.empty()) first_of_group[t] = first_of_group[first];
  });
  return first_of_group;
}

bool HasTablesToJoin(const Job& job) {
  bool any = false;
  ForEachPair(job, [&](uint32_t, uint32_t, const std::string& why_apart) {
    any = any || why_apart.empty();
  });
  return any;
}

std::vector<std::string> TablesKeptApart(const Job& job) {
  std::vector<std::string> sentences;
  if (!job.cluster.join_tables) return sentences;
  ForEachPair(job, [&](uint32_t first, uint32_t t, const std::string& why_apart) {
    if (why_apart.empty()) return;
    sentences.push_back("tables '" + job.tables[first].name + "' and '" + job.tables[t].name +
                        "' are read by the same features, but keep their rows apart: " + why_apart);
  });
  return sentences;
}

}  // namespace hdps
