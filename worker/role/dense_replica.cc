// Moves dense state to and from the servers, and forms the groups that reduce its gradients.
#include "worker/role/dense_replica.h"

#include <glog/logging.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/job/job_facts.h"
#include "common/job/spec/layer_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/platform/failpoint.h"
#include "common/platform/memory_full.h"
#include "common/protocol/row_messages.h"
#include "worker/dense/dense_plan.h"
#include "worker/dense/dense_runs.h"

namespace hdps {
namespace {

constexpr char kMemory[] =
    "the dense layers and their optimizer's state (model.hidden, model.layers)";

}  // namespace

DenseReplica::DenseReplica(const Job& job, const DenseRows& rows, const TrainedPart& part,
                           Executor& executor, MonotonicClock& time)
    : job_(job), rows_(rows), part_(part), executor_(executor), time_(time) {}

bool DenseReplica::used() const { return rows_.at_servers().keys().size() < rows_.keys().size(); }

const DenseShards& DenseReplica::ShardsAt(WorkerPlace place) {
  const bool cut = part_.rank_model() != nullptr;
  const bool fits = shards_ != nullptr &&
                    (cut || (shards_->rank() == place.rank && shards_->size() == place.workers));
  if (!fits) {
    const std::vector<DenseTensor>& tensors = part_.model().tensors();
    std::vector<bool> elsewhere = HeldByServers(part_.job(), tensors);
    for (const uint32_t t : OnDevice()) elsewhere[t] = true;
    // A model that a strategy cuts has no split optimizer.
    shards_ = std::make_unique<DenseShards>(job_, tensors, cut ? 0 : place.rank,
                                            cut ? 1 : place.workers, elsewhere);
  }
  return *shards_;
}

Status DenseReplica::CompareBuckets(const DensePlan& plan, Collective& group) const {
  const uint64_t mine = plan.Fingerprint() ^ (job_.parallel.gradient_fp32_sync ? 0 : 1);
  HDPS_ASSIGN_OR_RETURN(const std::vector<std::vector<uint64_t>> all,
                        GatherLists<uint64_t>(group, {&mine, 1}));
  for (uint32_t r = 0; r < all.size(); ++r) {
    if (all[r].front() == mine) continue;
    return Status(Code::kInvalidArgument,
                  "parallel.comm_fusion: worker " + std::to_string(r) +
                      " puts dense tensors together in another way than worker " +
                      std::to_string(group.rank()) +
                      "; give all workers the same parallel section and layers");
  }
  return Status();
}

Status DenseReplica::JoinGroup(Collective& group, WorkerPlace place) {
  CHECK_EQ(group.size(), place.workers);
  const DenseShards& shards = ShardsAt(place);
  const RankModel* const cut = part_.rank_model();
  const DensePlan plan = PlanDense(part_.job(), part_.model().tensors(), shards,
                                   cut == nullptr ? std::vector<uint32_t>() : cut->SharedBy());
  HDPS_RETURN_IF_ERROR(part_.CompareStrategies(group));
  HDPS_RETURN_IF_ERROR(CompareBuckets(plan, group));
  if (cut != nullptr) {
    HDPS_ASSIGN_OR_RETURN(rank_groups_, RankGroups::Form(cut->graph(), group));
  }
  if (shards.any() && shards.places() < shards.size()) {
    HDPS_ASSIGN_OR_RETURN(places_, group.Split(shards.group()));
    HDPS_ASSIGN_OR_RETURN(replicas_, group.Split(shards.place()));
  }
  if (shards.any()) {
    LOG(INFO) << "the optimizer of " << shards.OwnKeys().size() << " of " << rows_.keys().size()
              << " chunks of dense tensors is kept here, shared with " << shards.places() - 1
              << " workers";
  }
  if (plan.buckets.size() > 1 && group.size() > 1) {
    queue_ = std::make_unique<CollectiveQueue>(group, time_);
  }
  LOG(INFO) << "dense gradients travel in " << plan.buckets.size() << " buckets";
  return cut == nullptr && !shards.any() ? MeetAtNewest(group, shards) : Status();
}

void DenseReplica::GiveWeights(const DenseState& state, std::span<const float> rows) {
  Model& model = part_.model();
  for (size_t k = 0; k < state.keys().size(); ++k) {
    const Key key = state.keys()[k];
    const FloatRun tensor = RunOf(model.tensors()[key >> 32]);
    const size_t begin = tensor.begin + (key & 0xffffffffu) * kDenseChunkFloats;
    model.SetDenseAt(begin, rows.subspan(k * state.row_floats(), kDenseChunkFloats));
  }
}

Status DenseReplica::MeetAtNewest(Collective& group, const DenseShards& shards) {
  constexpr int64_t kNone = -1;
  const int64_t mine = loaded() ? clock_ : kNone;
  HDPS_ASSIGN_OR_RETURN(const std::vector<std::vector<int64_t>> clocks,
                        GatherLists<int64_t>(group, {&mine, 1}));
  const auto newest = std::ranges::max_element(clocks);
  if (std::ranges::count(clocks, *newest) == static_cast<ptrdiff_t>(clocks.size())) return {};
  const auto from = static_cast<uint32_t>(newest - clocks.begin());
  const MemoryFor dense(kMemory);
  const bool behind = mine < newest->front();
  std::unique_ptr<HostDenseState> new_host = loaded() ? nullptr : NewHostState(shards);
  std::unique_ptr<DeviceDenseState> new_device = loaded() ? nullptr : NewDeviceState();
  HostDenseState* const host = loaded() ? host_.get() : new_host.get();
  DeviceDenseState* const device = loaded() ? device_.get() : new_device.get();
  const auto sent = [&](DenseState* state) -> Result<std::vector<float>> {
    if (state == nullptr) return std::vector<float>();
    std::vector<float> rows(state->keys().size() * state->row_floats());
    if (group.rank() == from) rows = state->Rows();
    HDPS_RETURN_IF_ERROR(BroadcastArray(group, from, std::span(rows)));
    return rows;
  };
  // Nothing changes before all has come.
  HDPS_ASSIGN_OR_RETURN(const std::vector<float> host_rows, sent(host));
  HDPS_ASSIGN_OR_RETURN(const std::vector<float> device_rows, sent(device));
  if (behind && host != nullptr) {
    host->Store(host_rows);
    GiveWeights(*host, host_rows);
  }
  if (behind && device != nullptr) device->Store(device_rows);
  if (new_host != nullptr) host_ = std::move(new_host);
  if (new_device != nullptr) device_ = std::move(new_device);
  clock_ = newest->front();
  LOG(INFO) << "the dense layers are those of step " << clock_ << ", as worker " << from
            << " has them" << (behind ? "" : "; so were they here");
  return {};
}

void DenseReplica::LeaveGroup() {
  rank_groups_.reset();
  queue_.reset();
  places_.reset();
  replicas_.reset();
}

DenseGroup DenseReplica::InGroup(Collective& group) {
  CHECK(loaded());
  Collective* const places = places_ == nullptr ? &group : places_.get();
  return {{&group, places, replicas_.get()},
          host_.get(),
          shards_.get(),
          queue_.get(),
          rank_groups_.get(),
          device_.get(),
          &clock_};
}

std::vector<uint32_t> DenseReplica::OnDevice() const {
  std::vector<uint32_t> there;
  Model& model = part_.model();
  if (model.ops().on_host()) return there;
  for (uint32_t t = 0; t < model.tensors().size(); ++t) {
    const LayerSpec& layer = part_.job().model.layers[model.tensors()[t].layer];
    if (WhyDenseOnHost(job_, layer).empty()) there.push_back(t);
  }
  return there;
}

std::unique_ptr<DeviceDenseState> DenseReplica::NewDeviceState() const {
  const std::vector<uint32_t> tensors = OnDevice();
  if (tensors.empty()) return nullptr;
  return std::make_unique<DeviceDenseState>(part_.job().tables.back(), part_.model(), tensors);
}

std::unique_ptr<HostDenseState> DenseReplica::NewHostState(const DenseShards& shards) const {
  std::vector<Key> keys = shards.OwnKeys();
  if (keys.empty() && !OnDevice().empty()) return nullptr;
  const Job& job = part_.job();
  const RankGraph* const cut = part_.rank_model() ? &part_.rank_model()->graph() : nullptr;
  const std::vector<DenseTensor>& tensors = part_.model().tensors();
  std::vector<TensorHome> homes;
  for (uint32_t t = 0; t < tensors.size(); ++t) {
    const bool own = job.model.layers[tensors[t].layer].layerwise_parallel;
    const bool copy = cut != nullptr && cut->tensors[t].first_holder != cut->rank;
    homes.push_back(own               ? TensorHome::kOwn
                    : copy            ? TensorHome::kCopy
                    : shards.split(t) ? TensorHome::kSplit
                                      : TensorHome::kEach);
  }
  return std::make_unique<HostDenseState>(job.tables.back(), rows_.table(), job_.seed,
                                          std::move(keys), std::move(homes));
}

Status DenseReplica::Load(WorkerPlace place, Clock clock) {
  if (loaded()) return Status();
  const MemoryFor dense(kMemory);
  const DenseShards& shards = ShardsAt(place);
  std::unique_ptr<HostDenseState> host = NewHostState(shards);
  std::unique_ptr<DeviceDenseState> device = NewDeviceState();
  Model& model = part_.model();
  // Slices of a cut model are not chunks, so the whole tensors are read.
  RankModel* const cut = part_.rank_model();
  const auto fill = [&](DenseState& state) -> Status {
    const uint32_t row_floats = state.row_floats();
    const std::vector<Key>& keys = cut == nullptr ? state.keys() : rows_.keys();
    std::vector<float> rows(keys.size() * row_floats);
    HDPS_RETURN_IF_ERROR(rows_.Read(PullMode::kWithState, row_floats, keys, clock, rows));
    state.Store(cut == nullptr ? rows : cut->CutRows(row_floats, rows));
    return Status();
  };
  if (host != nullptr) HDPS_RETURN_IF_ERROR(fill(*host));
  if (host != nullptr && shards.all_here()) {
    std::vector<float> weights(model.dense_floats());
    host->ReadWeights(executor_, weights);
    model.SetDense(weights);
  } else if (host != nullptr || !rows_.at_servers().empty()) {
    HDPS_RETURN_IF_ERROR(rows_.ReadInto(model, clock));
  }
  if (device != nullptr) HDPS_RETURN_IF_ERROR(fill(*device));
  host_ = std::move(host);
  device_ = std::move(device);
  clock_ = clock;
  return Status();
}

std::vector<float> DenseReplica::StoredRows(const DenseShards& shards, std::vector<Key>* keys) {
  std::vector<float> rows;
  if (host_ != nullptr) *keys = shards.StoredKeys();
  if (!keys->empty()) {
    // These are all its keys or the last of them.
    CHECK_LE(keys->size(), host_->keys().size());
    rows = host_->Rows();
    const size_t others = rows.size() - keys->size() * host_->row_floats();
    rows.erase(rows.begin(), rows.begin() + static_cast<ptrdiff_t>(others));
  }
  if (device_ != nullptr && shards.rank() == 0) {
    keys->insert(keys->end(), device_->keys().begin(), device_->keys().end());
    const std::vector<float> more = device_->Rows();
    rows.insert(rows.end(), more.begin(), more.end());
  }
  return rows;
}

Status DenseReplica::Store(WorkerPlace place, Clock clock) {
  // Slices are joined after the steps by StoreSlices(), which needs all ranks.
  if (!loaded() || part_.rank_model() != nullptr) return Status();
  HDPS_FAILPOINT_OR_RETURN("worker.dense.before_store");
  const MemoryFor dense(kMemory);
  std::vector<Key> keys;
  const std::vector<float> rows = StoredRows(ShardsAt(place), &keys);
  if (keys.empty()) return Status();
  const uint32_t row_floats = host_ != nullptr ? host_->row_floats() : device_->row_floats();
  return rows_.Store(row_floats, keys, clock, rows);
}

Status DenseReplica::StoreSlices(Collective& group, Clock clock) {
  RankModel* const cut = part_.rank_model();
  CHECK(cut != nullptr && loaded());
  // All tensors of a cut model are updated in one place.
  DenseState& state = host_ != nullptr ? static_cast<DenseState&>(*host_) : *device_;
  const uint32_t row_floats = state.row_floats();
  HDPS_ASSIGN_OR_RETURN(const std::vector<float> rows,
                        cut->GatherRows(group, row_floats, state.Rows()));
  if (cut->graph().rank != 0) return Status();
  return rows_.Store(row_floats, rows_.keys(), clock, rows);
}

void DenseReplica::Outdate() {
  Forget();
  shards_.reset();
  rank_groups_.reset();
}

}  // namespace hdps
