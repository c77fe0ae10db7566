// Keeps one slab a table, and updates its rows by slot, with the gradients of one worker or summed
// over workers.
#include "worker/cache/hot_rows.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "common/job/job_spec.h"
#include "common/job/schedule.h"
#include "common/job/spec/table_spec.h"
#include "embedding/memory/gradient_scale.h"
#include "embedding/memory/optimizer.h"

namespace hdps {
HotRows::HotRows(const Job& job, std::vector<HotGroup> groups, DenseOps& ops)
    : job_(job),
      groups_(std::move(groups)),
      ops_(ops),
      loaded_(groups_.size()),
      slabs_(job.tables.size()),
      sum_(ops),
      not_finite_(&ops),
      told_(job.tables.size()) {
  for (const HotGroup& group : groups_) {
    dirty_.emplace_back(group.rows_max, 0);
    for (const TableId table : group.tables) {
      const TableSpec& spec = job.tables[table.value];
      auto slab = std::make_unique<Slab>(&ops);
      slab->rows = {nullptr, spec.dim, StateFloats(spec.optimizer, spec.dim)};
      slab->rows.data = slab->memory.Reserve(group.rows_max * slab->rows.row_floats());
      slabs_[table.value] = std::move(slab);
    }
  }
  ops_.FillZero(not_finite_.Reserve(told_.size()), told_.size());
}

const RowSlab* HotRows::slab(TableId table) const {
  return slabs_[table.value] == nullptr ? nullptr : &slabs_[table.value]->rows;
}

uint64_t HotRows::bytes() const {
  uint64_t bytes = 0;
  for (const auto& slab : slabs_) {
    if (slab != nullptr) bytes += slab->memory.size() * sizeof(float);
  }
  return bytes;
}

std::string HotRows::Describe() const {
  const char* const where = ops_.on_host() ? "host" : "cuda";
  std::string text = "rows kept at this worker:";
  for (const HotGroup& group : groups_) {
    for (const TableId table : group.tables) {
      const RowSlab& rows = *slab(table);
      const uint64_t table_bytes = group.rows_max * rows.row_floats() * sizeof(float);
      text += "\n  table " + job_.tables[table.value].name + ": " + std::to_string(group.rows_max) +
              " rows of " + std::to_string(rows.dim) + " + " + std::to_string(rows.state_floats) +
              " floats on " + where + ", " + std::to_string(table_bytes) + " bytes";
    }
  }
  return text;
}

void HotRows::Load(std::span<const HotSplit> hot) {
  for (size_t g = 0; g < groups_.size(); ++g) ops_.LoadSlots(hot[g].slots, &loaded_[g]);
}

void HotRows::Gather(std::vector<std::vector<float>>& rows) const {
  CHECK(ops_.on_host());
  for (size_t g = 0; g < groups_.size(); ++g) {
    for (const TableId table : groups_[g].tables) {
      ops_.GatherRows(loaded(g), *slab(table), rows[table.value].data());
    }
  }
}

Result<StepVote> HotRows::Apply(const HotStep& step) {
  HDPS_ASSIGN_OR_RETURN(const StepVote all, Combine(step));
  HDPS_RETURN_IF_ERROR(Update(step.terms));
  return all;
}

Result<StepVote> HotRows::AddTogether(const HotStep& step) {
  std::vector<HotGradients> groups(groups_.size());
  const bool has_examples = step.mine.examples > 0;
  for (size_t g = 0; g < groups_.size(); ++g) {
    groups[g].num_hot = step.hot[g].keys->size();
    if (has_examples) groups[g].slots = step.hot[g].slots;
    for (const TableId table : groups_[g].tables) {
      groups[g].tables.push_back({job_.tables[table.value].dim, step.gradients[table.value]});
    }
  }
  const float part_scale = has_examples ? PartScale(job_.parallel, step.mine.examples) : 1.0f;
  return sum_.Add(*step.group, step.mine, part_scale, groups);
}

Result<StepVote> HotRows::Combine(const HotStep& step) {
  combined_.clear();
  StepVote all = step.mine;
  const bool alone = step.group == nullptr;
  if (!alone) {
    HDPS_ASSIGN_OR_RETURN(all, AddTogether(step));
  }
  if (all.examples == 0) return all;
  scales_.step = step.number;
  scales_.part_scale = alone ? PartScale(job_.parallel, all.examples) : 1;
  scales_.scale = SumScale(job_.parallel, alone ? 1 : step.group->size(), all.examples);
  for (size_t g = 0; g < groups_.size(); ++g) {
    const std::span<const uint32_t> slots =
        alone ? step.hot[g].slots : std::span<const uint32_t>(sum_.touched(g));
    for (size_t t = 0; t < groups_[g].tables.size(); ++t) {
      const TableId table = groups_[g].tables[t];
      combined_.push_back({table, slots.size(), alone ? loaded_[g].get() : &sum_.loaded(g),
                           alone ? step.gradients[table.value] : sum_.sum(g, t)});
    }
    for (const uint32_t slot : slots) {
      if (slot != kNotInSlab) dirty_[g][slot] = 1;
    }
  }
  return all;
}

RowUpdate HotRows::UpdateOf(const Combined& combined, const UpdateTerms& terms) const {
  const TableSpec& spec = job_.tables[combined.table.value];
  RowUpdate update = scales_;
  update.rule = OptimizerAt(spec, update.step, terms.rate, terms.steps_before);
  update.finish = GradientTerms(spec, terms).finish();
  return update;
}

Result<StepVote> HotRows::Sum(const HotStep& step) {
  squares_ = {};
  HDPS_ASSIGN_OR_RETURN(const StepVote all, Combine(step));
  std::vector<std::vector<double>> squares;
  for (const Combined& combined : combined_) {
    squares.emplace_back(combined.rows);
    ops_.FetchRowSquares(UpdateOf(combined, {}), *combined.slots, combined.values,
                         *slab(combined.table), squares.back(), NotFinite(combined.table));
  }
  ops_.FetchLater(not_finite_.data(), told_);
  HDPS_RETURN_IF_ERROR(Settle());
  for (const std::vector<double>& of_table : squares) {
    for (const double of_row : of_table) squares_.Add(of_row);
  }
  return all;
}

Status HotRows::Update(const UpdateTerms& terms) {
  for (const Combined& combined : combined_) {
    ops_.UpdateRows(UpdateOf(combined, terms), *combined.slots, combined.values,
                    *slab(combined.table), NotFinite(combined.table));
  }
  combined_.clear();
  // On a device this checks the steps before; on the host, this step too.
  if (!ops_.on_host()) HDPS_RETURN_IF_ERROR(Check());
  ops_.FetchLater(not_finite_.data(), told_);
  return ops_.on_host() ? Check() : Status();
}

Status HotRows::Settle() {
  ops_.Fetch();
  return Check();
}

Status HotRows::Check() const {
  for (size_t t = 0; t < told_.size(); ++t) {
    if (told_[t] == 0) continue;
    return Status(Code::kCorruption, "table '" + job_.tables[t].name +
                                         "': a gradient is not a number any more: training has "
                                         "diverged; try a smaller learning_rate");
  }
  return Status();
}

HotRows::GroupRows HotRows::Get(size_t g, std::span<const uint32_t> slots) const {
  std::unique_ptr<SlabSlots> loaded;
  ops_.LoadSlots(slots, &loaded);
  GroupRows rows;
  std::vector<SlabRows<float>> places;
  for (const TableId table : groups_[g].tables) {
    rows.emplace_back(slots.size() * row_floats(table));
    places.push_back({*slab(table), rows.back()});
  }
  ops_.ReadSlabs(*loaded, places);
  ops_.Fetch();
  return rows;
}

void HotRows::Put(size_t g, std::span<const uint32_t> slots, const GroupRows& rows) {
  std::unique_ptr<SlabSlots> loaded;
  ops_.LoadSlots(slots, &loaded);
  std::vector<SlabRows<const float>> places;
  for (size_t t = 0; t < groups_[g].tables.size(); ++t) {
    places.push_back({*slab(groups_[g].tables[t]), rows[t]});
  }
  ops_.WriteSlabs(*loaded, places);
}

void HotRows::Clear() {
  for (std::vector<uint8_t>& of_group : dirty_) std::ranges::fill(of_group, 0);
  ops_.FillZero(not_finite_.data(), told_.size());
  std::ranges::fill(told_, 0);
}

}  // namespace hdps
