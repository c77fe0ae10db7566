// Applies the pieces of requests to the slices of one shard.
#include "server/shard.h"

#include <glog/logging.h>

#include <algorithm>
#include <string>
#include <utility>

#include "common/base/shard_map.h"
#include "common/job/job_spec.h"
#include "common/job/spec/checkpoint_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/table_spec.h"
#include "kernels/host/half_floats.h"
#include "kernels/keys/key_shards.h"

namespace hdps {

Shard::Shard(const Job& job, uint64_t tables_digest, std::span<const uint32_t> first_of_group,
             ShardId id, ServerMemoryLimit* memory)
    : id_(id),
      seed_(job.seed),
      num_shards_(job.cluster.shards),
      tables_digest_(tables_digest),
      saves_deltas_(job.checkpoint.saves_deltas()) {
  if (memory != nullptr) {
    memory_ = std::make_unique<ShardMemory>(memory->budget(), memory->disk());
  }
  tables_ =
      TableSlice::OfTables(job.tables, first_of_group, seed_, {id, num_shards_, memory_.get()});
}

void Shard::Separate() {
  std::vector<TableSpec> specs;
  std::vector<uint32_t> alone;
  for (const TableSlice& table : tables_) {
    alone.push_back(static_cast<uint32_t>(specs.size()));
    specs.push_back(table.spec());
  }
  tables_.clear();  // Before others use the same place on disk.
  tables_ = TableSlice::OfTables(specs, alone, seed_, {id_, num_shards_, memory_.get()});
}

bool Shard::KeysAgree() const { return std::ranges::all_of(tables_, &TableSlice::KeysAgree); }

Status Shard::CheckKeys(std::span<const ShardPiece> pieces, const Buffer& keys) const {
  for (const ShardPiece& piece : pieces) {
    const TableSpec& spec = tables_[piece.table.value].spec();
    const std::span<const Key> own = piece.KeysIn(keys);
    const size_t bad = FirstOfAnotherShard(width_, own, spec.shard_by, num_shards_, id_);
    if (bad == own.size()) continue;
    const ShardId shard = ShardOf(own[bad], spec.shard_by, num_shards_);
    return {Code::kCorruption, "table '" + spec.name + "': key " + std::to_string(own[bad]) +
                                   " belongs to shard " + std::to_string(shard.value) +
                                   ", it was sent for shard " + std::to_string(id_.value)};
  }
  return {};
}

Status Shard::CheckFloats(std::span<const ShardPiece> pieces, const Buffer& keys, DType format,
                          std::span<const std::byte> values) const {
  for (const ShardPiece& piece : pieces) {
    const std::byte* const own = piece.ValuesIn(format, values).data();
    const size_t bad = FirstNotFinite(format, own, piece.num_floats());
    if (bad == piece.num_floats()) continue;
    const Key key = piece.KeysIn(keys)[bad / piece.row_floats];
    float value = 0;
    WidenFloats(width_, format, own + bad * FloatBytes(format), {&value, 1});
    return {Code::kCorruption,
            "table '" + tables_[piece.table.value].spec().name + "': a value of key " +
                std::to_string(key) + " is " + std::to_string(value) +
                "; training has diverged: lower the learning rate or look at the data"};
  }
  return {};
}

void Shard::ForEachJoint(std::span<const ShardPiece> pieces,
                         const std::function<void(JointPieces joint)>& use) const {
  std::vector<const ShardPiece*> joint;
  const auto joins = [this](const ShardPiece& a, const ShardPiece& b) {
    return a.SameKeysAs(b) && tables_[a.table.value].SharesRowsWith(tables_[b.table.value]);
  };
  for (size_t p = 0; p < pieces.size(); ++p) {
    const auto joins_this = [&](const ShardPiece& other) { return joins(pieces[p], other); };
    if (std::ranges::any_of(pieces.first(p), joins_this)) continue;  // Was among its pieces.
    joint.clear();
    for (const ShardPiece& other : pieces.subspan(p)) {
      if (joins_this(other)) joint.push_back(&other);
    }
    use(joint);
  }
}

void Shard::Read(std::span<const ShardPiece> pieces, const Buffer& keys, DType format,
                 std::span<std::byte> rows) {
  std::vector<TableSlice::JoinedRead> reads;
  ForEachJoint(pieces, [&](JointPieces joint) {
    if (format != DType::kFp32) return ReadHalf(joint, keys, format, rows);
    reads.clear();
    for (const ShardPiece* piece : joint) {
      const std::span<std::byte> own = piece->ValuesIn(format, rows);
      reads.push_back({&tables_[piece->table.value],
                       piece->row_floats,
                       {reinterpret_cast<float*>(own.data()), piece->num_floats()}});
    }
    TableSlice::ReadJoined(joint[0]->KeysIn(keys), reads);
  });
}

// Reads so few rows at a time that they are still in the cache when they are narrowed.
void Shard::ReadHalf(JointPieces pieces, const Buffer& keys, DType format,
                     std::span<std::byte> rows) {
  constexpr size_t kBlockFloats = 16384;
  size_t row_floats = 0;  // Of all pieces.
  for (const ShardPiece* piece : pieces) row_floats += piece->row_floats;
  const size_t block = std::max<size_t>(kBlockFloats / std::max<size_t>(row_floats, 1), 1);
  const std::span<const Key> own = pieces[0]->KeysIn(keys);
  std::vector<TableSlice::JoinedRead> reads;
  for (size_t begin = 0; begin < own.size(); begin += block) {
    const std::span<const Key> some = own.subspan(begin, std::min(block, own.size() - begin));
    wide_.resize(std::max(wide_.size(), some.size() * row_floats));
    std::span<float> left = wide_;
    reads.clear();
    for (const ShardPiece* piece : pieces) {
      const size_t floats = some.size() * piece->row_floats;
      reads.push_back({&tables_[piece->table.value], piece->row_floats, left.first(floats)});
      left = left.subspan(floats);
    }
    TableSlice::ReadJoined(some, reads);
    for (size_t p = 0; p < pieces.size(); ++p) {
      std::byte* const to = pieces[p]->ValuesIn(format, rows).data();
      NarrowFloats(width_, format, reads[p].rows,
                   to + begin * pieces[p]->row_floats * FloatBytes(format));
    }
  }
}

void Shard::ReadChanged(std::span<const ShardPiece> pieces, const Buffer& keys, int64_t since,
                        std::span<Changed> changed) {
  for (size_t p = 0; p < pieces.size(); ++p) {
    const ShardPiece& piece = pieces[p];
    TableSlice& table = tables_[piece.table.value];
    changed[p].all = table.spec().dense;
    changed[p].positions.clear();
    changed[p].weights.clear();
    if (changed[p].all) continue;
    table.ReadChanged(piece.KeysIn(keys), since, &changed[p].positions, &changed[p].weights);
  }
}

void Shard::Store(std::span<const ShardPiece> pieces, const Buffer& keys,
                  std::span<const float> rows, int64_t step) {
  for (const ShardPiece& piece : pieces) {
    tables_[piece.table.value].Store(piece.KeysIn(keys), piece.row_floats, piece.FloatsIn(rows),
                                     step);
  }
}

Shard::Parts Shard::PartsOf(std::span<const PlannedPush> pushes, size_t slot) {
  size_t wide_floats = 0;
  for (const PlannedPush& push : pushes) {
    if (push.request.format == DType::kFp32) continue;
    for (const ShardPiece& piece : push.list->plan.OfShard(slot)) wide_floats += piece.num_floats();
  }
  wide_.resize(std::max(wide_.size(), wide_floats));
  float* wide = wide_.data();
  Parts parts(tables_.size());
  for (const PlannedPush& push : pushes) {
    const DType format = push.request.format;
    const Buffer& values = push.request.gradients;
    for (const ShardPiece& piece : push.list->plan.OfShard(slot)) {
      if (piece.num_keys == 0) continue;
      std::span<const float> gradients;
      if (format == DType::kFp32) {
        gradients = piece.FloatsIn(values.As<float>());
      } else {
        WidenFloats(width_, format, piece.ValuesIn(format, values.bytes()).data(),
                    {wide, piece.num_floats()});
        gradients = {wide, piece.num_floats()};
        wide += piece.num_floats();
      }
      parts[piece.table.value].push_back({piece.KeysIn(push.list->keys), gradients, push.scale});
    }
  }
  return parts;
}

void Shard::Apply(std::span<const PlannedPush> pushes, size_t slot, float scale, int64_t step,
                  const UpdateTerms& terms) {
  const Parts parts = PartsOf(pushes, slot);
  std::vector<TableSlice::JoinedUpdate> joined;
  for (size_t t = 0; t < tables_.size(); ++t) {
    if (parts[t].empty()) continue;
    const auto shares = [&](const TableSlice& other) { return other.SharesRowsWith(tables_[t]); };
    if (std::any_of(tables_.begin(), tables_.begin() + static_cast<ptrdiff_t>(t), shares)) {
      continue;  // Was updated with the first of them.
    }
    joined.clear();
    for (size_t other = t; other < tables_.size(); ++other) {
      if (shares(tables_[other])) joined.push_back({&tables_[other], parts[other]});
    }
    if (joined.size() > 1) {
      TableSlice::ApplyJoined(joined, scale, step, terms);
    } else {
      tables_[t].Apply(parts[t], scale, step, terms);
    }
  }
}

SquareSum Shard::Squares(std::span<const PlannedPush> pushes, size_t slot, float scale) {
  const Parts parts = PartsOf(pushes, slot);
  SquareSum squares;
  for (size_t t = 0; t < tables_.size(); ++t) {
    if (!parts[t].empty()) squares.Add(tables_[t].Squares(parts[t], scale));
  }
  return squares;
}

void Shard::EndStep(int64_t step) {
  for (TableSlice& table : tables_) table.EndStep(step);
}

Result<RowsDigest> Shard::Digest() const {
  RowsDigest digest;
  for (const TableSlice& table : tables_) {
    HDPS_ASSIGN_OR_RETURN(RowsDigest own, table.Digest());
    if (table.spec().dense) own.rows = 0;  // Parts of layers and states do not count as rows.
    digest.Add(own);
  }
  return digest;
}

RowCounts Shard::counters() const {
  RowCounts counters;
  for (const TableSlice& table : tables_) counters.Add(table.counters());
  return counters;
}

Status Shard::failure() const {
  if (memory_ != nullptr) HDPS_RETURN_IF_ERROR(memory_->failure());
  for (const TableSlice& table : tables_) HDPS_RETURN_IF_ERROR(table.failure());
  return {};
}

size_t Shard::bytes() const {
  size_t bytes = 0;
  for (const TableSlice& table : tables_) bytes += table.bytes();
  return bytes;
}

std::vector<const TableSlice*> Shard::Slices() const {
  std::vector<const TableSlice*> slices;
  for (const TableSlice& table : tables_) slices.push_back(&table);
  return slices;
}

SnapshotHeader Shard::HeaderOf(Clock clock, Clock since) const {
  const auto knows = [since](const TableSlice& table) { return table.marked_clock() == since; };
  const bool is_delta = since > 0 && std::ranges::all_of(tables_, knows);
  return {tables_digest_, id_, num_shards_, clock, is_delta ? since : kNoClock};
}

Result<SavedFile> Shard::Save(FileSystem& files, const std::string& folder, Clock clock,
                              Clock since) {
  HDPS_ASSIGN_OR_RETURN(const SavedFile saved,
                        WriteSnapshot(files, folder, HeaderOf(clock, since), Slices()));
  MarkSaved(clock);
  return saved;
}

void Shard::ForgetErased(Clock since) {
  for (TableSlice& table : tables_) {
    if (table.marked_clock() == since) table.MarkSaved(since);
  }
}

Result<std::optional<TakenSnapshot>> Shard::Take(Clock clock, Clock since, CopyBudget* budget) {
  HDPS_ASSIGN_OR_RETURN(std::optional<TakenSnapshot> taken,
                        TakeSnapshot(HeaderOf(clock, since), Slices(), budget));
  if (taken) MarkSaved(clock);
  return taken;
}

SnapshotHeader Shard::HeaderOfMove(Clock clock, Clock since) const {
  const auto knows = [since](const TableSlice& table) { return table.move_clock() == since; };
  const bool is_delta = since > 0 && clock > since && std::ranges::all_of(tables_, knows);
  return {tables_digest_, id_, num_shards_, clock, is_delta ? since : kNoClock};
}

Result<std::optional<TakenSnapshot>> Shard::TakeMoved(Clock clock, Clock since,
                                                      CopyBudget* budget) {
  HDPS_ASSIGN_OR_RETURN(
      std::optional<TakenSnapshot> taken,
      TakeSnapshot(HeaderOfMove(clock, since), Slices(), budget, SnapshotKind::kMoved));
  for (TableSlice& table : tables_) {
    if (taken) table.MarkMove(clock);
  }
  return taken;
}

Result<SavedFile> Shard::SaveMoved(FileSystem& files, const std::string& folder, Clock clock,
                                   Clock since) {
  return WriteSnapshot(files, folder, HeaderOfMove(clock, since), Slices(), Survives::kProcess,
                       SnapshotKind::kMoved);
}

Status Shard::LoadCopy(FileSystem& files, const std::string& folder, const SavedFile& copy,
                       Clock clock) {
  CheckpointPart part{.folder = folder, .manifest = {}};
  part.manifest.clock = clock;
  part.manifest.tables_digest = tables_digest_;
  part.manifest.num_shards = num_shards_;
  part.manifest.files = {copy};
  return Load(files, {std::move(part)}, IfDamaged::kSlicesAreDropped);
}

Status Shard::LoadMoved(FileSystem& files, const std::string& folder, const SavedFile& changes,
                        Clock clock, Clock since) {
  std::vector<TableSlice*> tables;
  for (TableSlice& table : tables_) tables.push_back(&table);
  HDPS_RETURN_IF_ERROR(ReadSnapshot(files, folder, changes,
                                    {tables_digest_, id_, num_shards_, clock, since}, tables));
  if (!KeysAgree()) {
    return {Code::kCorruption,
            PlaceOf(folder, changes) + ": tables that share rows have other keys than each other"};
  }
  MarkSaved(clock);
  return failure();
}

Status Shard::Load(FileSystem& files, const std::vector<CheckpointPart>& chain,
                   IfDamaged if_damaged) {
  const auto read = [&] {
    std::vector<TableSlice*> tables;
    for (TableSlice& table : tables_) tables.push_back(&table);
    return ReadShard(files, chain, id_, tables, if_damaged);
  };
  HDPS_RETURN_IF_ERROR(read());
  if (!KeysAgree()) {
    // Such rows come of policies that differed before, for example.
    LOG(WARNING) << "shard " << id_.value
                 << ": in the checkpoint, tables that could share rows have other keys than each "
                    "other, or were updated at other steps; their rows are kept apart";
    Separate();
    HDPS_RETURN_IF_ERROR(read());
  }
  MarkSaved(chain.back().manifest.clock);
  return failure();
}

void Shard::MarkSaved(Clock clock) {
  if (!saves_deltas_) return;
  for (TableSlice& table : tables_) table.MarkSaved(clock);
}

}  // namespace hdps
