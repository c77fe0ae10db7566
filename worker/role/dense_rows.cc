// Reads and stores the dense table through the transfers of worker/exchange.
#include "worker/role/dense_rows.h"

#include <glog/logging.h>

#include <optional>

#include "common/job/job_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/protocol/row_messages.h"
#include "worker/dense/dense_runs.h"
#include "worker/exchange/row_transfer.h"

namespace hdps {

DenseRows::DenseRows(const Job& job, const std::vector<DenseTensor>& tensors, NodeChannel& channel)
    : job_(job), channel_(channel), keys_(DenseKeys(tensors)), at_servers_(job, tensors) {
  CHECK(keys_.empty() || (!job.tables.empty() && job.tables.back().dense))
      << "the last table of a job is that of its dense tensors";
}

const TableSpec& DenseRows::spec() const { return job_.tables.back(); }

TableId DenseRows::table() const { return {static_cast<uint32_t>(job_.tables.size() - 1)}; }

std::vector<KeysOfTable> DenseRows::DenseOnly(uint32_t row_floats,
                                              const std::vector<Key>& keys) const {
  return {{table(), spec().shard_by, row_floats, keys, std::nullopt, true}};
}

Status DenseRows::Read(PullMode mode, uint32_t row_floats, const std::vector<Key>& keys,
                       Clock clock, std::span<float> rows) const {
  CHECK_EQ(rows.size(), keys.size() * row_floats);
  return ReadRows(channel_, DenseOnly(row_floats, keys), clock, mode, std::vector{rows});
}

Status DenseRows::Store(uint32_t row_floats, const std::vector<Key>& keys, Clock clock,
                        std::span<const float> rows) const {
  CHECK_EQ(rows.size(), keys.size() * row_floats);
  return StoreRows(channel_, DenseOnly(row_floats, keys), clock, std::vector{rows});
}

Status DenseRows::ReadInto(Model& model, Clock clock) const {
  if (empty()) return Status();
  std::vector<float> weights(model.dense_floats());
  HDPS_RETURN_IF_ERROR(Read(PullMode::kRead, spec().dim, keys_, clock, weights));
  model.SetDense(weights);
  return Status();
}

Status DenseRows::ReadServersInto(Model& model, Clock clock) const {
  if (at_servers_.empty()) return Status();
  const std::vector<Key>& keys = at_servers_.keys();
  std::vector<float> weights(keys.size() * spec().dim);
  HDPS_RETURN_IF_ERROR(Read(PullMode::kRead, spec().dim, keys, clock, weights));
  size_t at = 0;
  for (const FloatRun& run : at_servers_.runs()) {
    model.SetDenseAt(run.begin, std::span(weights).subspan(at, run.size));
    at += run.size;
  }
  return Status();
}

}  // namespace hdps
