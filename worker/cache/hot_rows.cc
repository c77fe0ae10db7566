// One slab a table; updates by slot, alone or of the sum over the workers.
#include "worker/cache/hot_rows.h"

#include <glog/logging.h>

#include <utility>

#include "common/job/schedule.h"
#include "embedding/memory/gradient_scale.h"
#include "embedding/memory/optimizer.h"
#include "kernels/host/finite.h"

namespace hdps {
namespace {

Status NotFinite(const TableSpec& table) {
  return Status(Code::kCorruption, "table '" + table.name +
                                       "': a gradient is not a number any more: training has "
                                       "diverged; try a smaller learning_rate");
}

}  // namespace

HotRows::HotRows(const Job& job, std::vector<HotGroup> groups, DenseOps& ops)
    : job_(job), groups_(std::move(groups)), ops_(ops), slabs_(job.tables.size()), uploaded_(&ops) {
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

void HotRows::Gather(std::span<const HotSplit> hot, std::vector<std::vector<float>>& rows) const {
  CHECK(ops_.on_host());
  for (size_t g = 0; g < groups_.size(); ++g) {
    for (const TableId table : groups_[g].tables) {
      std::vector<float>& to = rows[table.value];
      ops_.GatherRows(*slab(table), hot[g].slots, to, to.data());
    }
  }
}

bool HotRows::Plain(const UpdateTerms& terms) const {
  for (const HotGroup& group : groups_) {
    for (const TableId table : group.tables) {
      if (!GradientTerms(job_.tables[table.value], terms).none()) return false;
    }
  }
  return true;
}

Result<StepWord> HotRows::Apply(const HotStep& step) {
  if (!Plain(step.terms)) {
    HDPS_ASSIGN_OR_RETURN(const StepWord all, Sum(step));
    HDPS_RETURN_IF_ERROR(Update(step.terms));
    return all;
  }
  if (step.group != nullptr) return ApplyTogether(step);
  HDPS_RETURN_IF_ERROR(ApplyAlone(step));
  return step.mine;
}

const float* HotRows::OnDevice(std::span<const float> host) {
  if (ops_.on_host()) return host.data();
  ops_.Upload(host, uploaded_.Reserve(host.size()));
  return uploaded_.data();
}

Status HotRows::ApplyAlone(const HotStep& step) {
  const uint64_t examples = step.mine.examples;
  if (examples == 0) return Status();
  RowUpdate update;
  update.step = step.number;
  update.part_scale = PartScale(job_.parallel, examples);
  update.scale = SumScale(job_.parallel, 1, examples);
  for (size_t g = 0; g < groups_.size(); ++g) {
    const std::span<const uint32_t> slots = step.hot[g].slots;
    for (const TableId table : groups_[g].tables) {
      const RowGradients& gradients = step.gradients[table.value];
      const TableSpec& spec = job_.tables[table.value];
      update.rule = OptimizerAt(spec, step.number, step.terms.rate);
      const float* const values =
          gradients.device != nullptr ? gradients.device : OnDevice(gradients.host);
      if (!ops_.UpdateRows(update, slots, values, *slab(table))) return NotFinite(spec);
    }
    for (const uint32_t slot : slots) {
      if (slot != kNotInSlab) dirty_[g][slot] = 1;
    }
  }
  return Status();
}

Result<StepWord> HotRows::AddTogether(const HotStep& step) {
  std::vector<HotGradients> groups(groups_.size());
  const bool has_examples = step.mine.examples > 0;
  for (size_t g = 0; g < groups_.size(); ++g) {
    groups[g].num_hot = step.hot[g].keys->size();
    if (has_examples) groups[g].slots = step.hot[g].slots;
    for (const TableId table : groups_[g].tables) {
      groups[g].tables.push_back(
          {job_.tables[table.value].dim,
           has_examples ? step.gradients[table.value].host : std::span<const float>()});
    }
  }
  const float part_scale = has_examples ? PartScale(job_.parallel, step.mine.examples) : 1.0f;
  return sum_.Add(*step.group, step.mine, part_scale, groups);
}

Result<StepWord> HotRows::ApplyTogether(const HotStep& step) {
  HDPS_ASSIGN_OR_RETURN(const StepWord all, AddTogether(step));
  if (all.examples == 0) return all;
  RowUpdate update;
  update.step = step.number;
  update.scale = SumScale(job_.parallel, step.group->size(), all.examples);
  for (size_t g = 0; g < groups_.size(); ++g) {
    const std::vector<uint32_t>& touched = sum_.touched(g);
    for (size_t t = 0; t < groups_[g].tables.size(); ++t) {
      const TableId table = groups_[g].tables[t];
      const TableSpec& spec = job_.tables[table.value];
      update.rule = OptimizerAt(spec, step.number, step.terms.rate);
      const float* const values = OnDevice(sum_.sum(g, t));
      if (!ops_.UpdateRows(update, touched, values, *slab(table))) return NotFinite(spec);
    }
    for (const uint32_t slot : touched) dirty_[g][slot] = 1;
  }
  return all;
}

Result<StepWord> HotRows::Sum(const HotStep& step) {
  summed_.clear();
  squares_ = {};
  number_ = step.number;
  StepWord all = step.mine;
  if (step.group != nullptr) {
    HDPS_ASSIGN_OR_RETURN(all, AddTogether(step));
  }
  if (all.examples == 0) return all;
  const uint64_t workers = step.group == nullptr ? 1 : step.group->size();
  RowUpdate update;
  update.part_scale = step.group == nullptr ? PartScale(job_.parallel, all.examples) : 1;
  update.scale = SumScale(job_.parallel, workers, all.examples);
  for (size_t g = 0; g < groups_.size(); ++g) {
    const std::span<const uint32_t> slots =
        step.group == nullptr ? step.hot[g].slots : std::span<const uint32_t>(sum_.touched(g));
    for (size_t t = 0; t < groups_[g].tables.size(); ++t) {
      const TableId table = groups_[g].tables[t];
      const RowGradients values =
          step.group == nullptr ? step.gradients[table.value] : RowGradients{sum_.sum(g, t)};
      HDPS_RETURN_IF_ERROR(Keep(table, slots, values, update));
    }
    for (const uint32_t slot : slots) {
      if (slot != kNotInSlab) dirty_[g][slot] = 1;
    }
  }
  return all;
}

Status HotRows::Keep(TableId table, std::span<const uint32_t> slots, const RowGradients& values,
                     const RowUpdate& update) {
  const TableSpec& spec = job_.tables[table.value];
  const size_t dim = spec.dim, row_floats = this->row_floats(table);
  Summed& summed = summed_.emplace_back(Summed{table, {}, {}});
  std::vector<float> downloaded(values.device != nullptr ? slots.size() * dim : 0);
  if (values.device != nullptr) ops_.Download(values.device, downloaded);
  const std::span<const float> from = values.device != nullptr ? downloaded : values.host;
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i] == kNotInSlab) continue;
    summed.slots.push_back(slots[i]);
    for (size_t d = 0; d < dim; ++d) {
      summed.gradients.push_back((from[i * dim + d] * update.part_scale) * update.scale);
    }
  }
  if (FirstNotFinite(summed.gradients) < summed.gradients.size()) return NotFinite(spec);
  const GradientTerms terms(spec, {});
  std::vector<float> rows(terms.penalizes() ? summed.slots.size() * row_floats : 0);
  if (terms.penalizes()) Get(table, summed.slots, rows);
  for (size_t i = 0; i < summed.slots.size(); ++i) {
    const std::span<float> gradient = std::span(summed.gradients).subspan(i * dim, dim);
    if (terms.penalizes()) {
      terms.AddPenalties(std::span(rows).subspan(i * row_floats, dim), gradient);
    }
    squares_.Add(SquaresOf(gradient));
  }
  return Status();
}

Status HotRows::Update(const UpdateTerms& terms) {
  for (Summed& summed : summed_) {
    const TableSpec& spec = job_.tables[summed.table.value];
    GradientTerms(spec, terms).Clip(summed.gradients);
    RowUpdate update;
    update.step = number_;
    update.rule = OptimizerAt(spec, number_, terms.rate);
    const float* const values = OnDevice(summed.gradients);
    if (!ops_.UpdateRows(update, summed.slots, values, *slab(summed.table))) return NotFinite(spec);
  }
  summed_.clear();
  return Status();
}

void HotRows::Get(TableId table, std::span<const uint32_t> slots, std::span<float> rows) const {
  ops_.ReadSlab(*slab(table), slots, rows);
}

void HotRows::Put(TableId table, std::span<const uint32_t> slots, std::span<const float> rows) {
  ops_.WriteSlab(rows, slots, *slab(table));
}

}  // namespace hdps
