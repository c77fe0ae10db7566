// Fuzzes snapshots and deltas of a shard: a damaged one stores no row, a valid one is written again
// byte for byte. In half of the inputs the checksums are made valid, so that the code behind them
// is reached.
#include "embedding/snapshot/snapshot.h"

#include <glog/logging.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/hash.h"
#include "common/job/optimizers/optimizer_record.h"
#include "common/job/optimizers/optimizers.h"
#include "common/job/spec/table_spec.h"
#include "common/platform/random.h"
#include "embedding/snapshot/snapshot_format.h"
#include "tests/fuzz/target.h"

namespace hdps::fuzz {
namespace {

constexpr uint32_t kShards = 4;
constexpr ShardId kShard = {2};
constexpr const char *kWhole = "out/step_0000000120", *kDelta = "out/step_0000000130";
constexpr uint64_t kTablesDigest = 77;

struct Slices {
  Slices() {
    TableSpec wide, deep;
    wide.name = "wide";
    wide.dim = 1;
    wide.optimizer.record = &RecordOf(OptimizerKind::kFtrl);
    deep.name = "deep";
    deep.dim = 3;
    deep.optimizer.record = &RecordOf(OptimizerKind::kAdam);
    tables.emplace_back(wide, TableId{0}, 1);
    tables.emplace_back(deep, TableId{1}, 1);
  }
  template <typename Slice>
  std::vector<Slice*> All() {
    return {&tables[0], &tables[1]};
  }
  // Updates a few rows in `step`.
  void Train(int64_t step, uint64_t seed) {
    Random random(seed);
    for (TableSlice& table : tables) {
      std::vector<Key> keys;
      while (keys.size() < 3) {
        const Key key = random.Next() % 64;
        if (ShardOf(key, ShardBy::kKey, kShards) != kShard) continue;
        if (std::count(keys.begin(), keys.end(), key) == 0) keys.push_back(key);
      }
      const std::vector<float> gradients(keys.size() * table.dim(), 0.5f);
      table.Apply(std::vector<TableSlice::Gradients>{{keys, gradients, 1}}, 1, step);
    }
  }
  bool Same(const Slices& other) const {
    for (size_t t = 0; t < tables.size(); ++t) {
      const RowsDigest a = *tables[t].Digest(), b = *other.tables[t].Digest();
      if (a.rows != b.rows || a.sum[0] != b.sum[0] || a.sum[1] != b.sum[1]) return false;
    }
    return true;
  }
  size_t rows() const { return tables[0].num_rows() + tables[1].num_rows(); }
  std::vector<TableSlice> tables;
};

SnapshotHeader HeaderOf(Clock clock, Clock base) {
  return {kTablesDigest, kShard, kShards, clock, base};
}

// Walks through a snapshot like its reader, and makes each checksum valid.
class Sealer {
 public:
  explicit Sealer(std::string* bytes) : bytes_(*bytes) {}
  void Run() {
    const auto header = Seal<SnapshotFileHeader>([](auto&) {});
    if (!header) return;
    if (header->version == kDeltaVersion) Seal<SnapshotDeltaHeader>([](auto&) {});
    bool fits = true;
    for (uint32_t t = 0; t < header->num_tables && fits; ++t) fits = SealTable();
    if (!fits) return;
    Seal<SnapshotTrailer>([this](SnapshotTrailer& trailer) {
      trailer.total_rows = total_rows_;
      trailer.body_bytes = at_;
      trailer.body_hash = HashString(bytes_.substr(0, at_));
    });
  }
  uint64_t total_rows() const { return total_rows_; }

 private:
  template <typename Header, typename Fill>
  std::optional<Header> Seal(const Fill& fill) {
    if (bytes_.size() - at_ < sizeof(Header)) return std::nullopt;
    Header header;
    std::memcpy(&header, bytes_.data() + at_, sizeof(header));
    fill(header);
    const auto whole = std::as_bytes(std::span(&header, 1));
    header.checksum = HashBytes(whole.first(offsetof(Header, checksum)));
    std::memcpy(bytes_.data() + at_, &header, sizeof(header));
    at_ += sizeof(header);
    return header;
  }
  bool SealTable() {
    const auto table = Seal<SnapshotTableHeader>([this](SnapshotTableHeader& header) {
      const size_t name = std::min(at_ + sizeof(header), bytes_.size());
      header.name_hash = HashString(bytes_.substr(name, header.name_bytes));
    });
    if (!table || bytes_.size() - at_ < table->name_bytes) return false;
    const std::string name = bytes_.substr(at_, table->name_bytes);
    at_ += table->name_bytes;
    if (KindOfPart(name_before_, name, table->dim) == PartKind::kRows) {
      total_rows_ += table->num_rows;
    }
    name_before_ = name;
    const uint64_t row_bytes =
        sizeof(Key) + (uint64_t{table->dim} + table->state_floats) * sizeof(float);
    for (uint64_t rows = 0; rows < table->num_rows;) {
      uint64_t payload = 0;
      const auto block = Seal<SnapshotBlockHeader>([&](SnapshotBlockHeader& header) {
        const size_t begin = at_ + sizeof(header);
        payload = header.num_rows * row_bytes;
        if (header.num_rows == 0 || bytes_.size() - begin < payload) payload = 0;
        header.payload_hash = HashString(bytes_.substr(begin, payload));
      });
      if (!block || payload == 0) return false;
      at_ += payload;
      rows += block->num_rows;
    }
    return true;
  }

  std::string& bytes_;
  size_t at_ = 0;
  uint64_t total_rows_ = 0;
  std::string name_before_;
};

// Writes the file `name` of `folder`, and returns its entry in a manifest.
SavedFile Put(FileSystem& files, const std::string& folder, const std::string& name,
              std::string bytes, bool repaired) {
  std::string sealed_bytes = bytes;
  Sealer sealer(&sealed_bytes);
  sealer.Run();
  if (repaired) bytes = sealed_bytes;
  PutFile(files, JoinPath(folder, name), bytes);
  return {name, bytes.size(), HashString(bytes), sealer.total_rows()};
}

CheckpointPart PartOf(const std::string& folder, Clock clock, const SavedFile& saved) {
  CheckpointPart part{folder, {}};
  part.manifest.tables_digest = kTablesDigest;
  part.manifest.num_shards = kShards;
  part.manifest.clock = clock;
  part.manifest.files = {saved};
  return part;
}

std::string Bytes(FileSystem& files, const std::string& folder, const SavedFile& saved) {
  return *ReadWholeFile(files, JoinPath(folder, saved.name), 1 << 26);
}

Verdict Refuse(const Status& status) {
  // Another version, and the file of another job, are mistakes of the operator.
  return Refused(
      status, status.code() == Code::kInvalidArgument ? Code::kInvalidArgument : Code::kCorruption);
}

Verdict RunWhole(std::string_view bytes) {
  Input input(bytes);
  const bool repaired = TakeChecksumRepair(input);
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  SavedFile saved =
      Put(*files, kWhole, SnapshotName(kShard), std::string(input.TakeRest()), repaired);
  const SnapshotHeader header = HeaderOf(120, kNoClock);
  Slices slices;
  if (!repaired) {  // Tests what can happen if the manifest was forged too.
    const auto summary = SummarizeSnapshot(*files, kWhole, saved, header, nullptr);
    if (!summary.ok()) static_cast<void>(summary.status());
  }
  const Status status = ReadSnapshot(*files, kWhole, saved, header, slices.All<TableSlice>());
  Slices empty;
  const std::vector<TableSlice*> empty_tables = empty.All<TableSlice>();
  const auto summary = SummarizeSnapshot(*files, kWhole, saved, header, &empty_tables);
  CHECK_EQ(summary.ok(), status.ok());
  if (!status.ok()) {
    CHECK_EQ(slices.rows(), 0u);
    return Refuse(status);
  }
  CHECK(files->MakeDirectories("again").ok());
  const auto again = WriteSnapshot(*files, "again", header, slices.All<const TableSlice>());
  CHECK(again.ok()) << again.status().message();
  CHECK(Bytes(*files, "again", *again) == Bytes(*files, kWhole, saved));
  return Verdict::kAccepted;
}

// A checkpoint of clock 120, and the changes up to 130.
struct Chain {
  Chain() {
    CHECK(files->MakeDirectories(kWhole).ok() && files->MakeDirectories(kDelta).ok());
    slices.Train(120, 1);
    for (TableSlice& table : slices.tables) table.MarkSaved(120);
    whole = *WriteSnapshot(*files, kWhole, HeaderOf(120, kNoClock), slices.All<const TableSlice>());
    slices.Train(130, 2);
    const Key gone[] = {FirstKey()};
    slices.tables[0].Erase(gone);
    delta = *WriteSnapshot(*files, kDelta, HeaderOf(130, 120), slices.All<const TableSlice>());
  }
  Key FirstKey() {
    Key first = 0;
    const auto take = [&](std::span<const Key> keys, std::span<const float>) {
      first = keys[0];
      return Status();
    };
    CHECK(slices.tables[0].VisitRows(100, take).ok());
    return first;
  }
  std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  Slices slices;
  SavedFile whole, delta;
};

Verdict RunDelta(std::string_view bytes) {
  static const Chain& chain = *new Chain;
  Input input(bytes);
  const bool repaired = TakeChecksumRepair(input);
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  const SavedFile whole = chain.whole;
  PutFile(*files, JoinPath(kWhole, whole.name), Bytes(*chain.files, kWhole, whole));
  const SavedFile delta =
      Put(*files, kDelta, DeltaName(kShard), std::string(input.TakeRest()), repaired);
  Slices slices, once;
  const std::vector<CheckpointPart> parts = {PartOf(kWhole, 120, whole),
                                             PartOf(kDelta, 130, delta)};
  const Status status = ReadShard(*files, parts, kShard, slices.All<TableSlice>());
  const Status same =
      ReadShard(*files, parts, kShard, once.All<TableSlice>(), IfDamaged::kSlicesAreDropped);
  CHECK_EQ(same.ok(), status.ok()) << status.message() << same.message();
  if (!status.ok()) {
    CHECK_EQ(slices.rows(), 0u);
    return Refuse(status);
  }
  CHECK(slices.Same(once));
  return Verdict::kAccepted;
}

std::vector<std::string> WholeSeeds() {
  const Chain chain;
  const std::string bytes = Bytes(*chain.files, kWhole, chain.whole);
  return {'\0' + bytes, '\1' + bytes};
}
std::vector<std::string> DeltaSeeds() {
  const Chain chain;
  const std::string bytes = Bytes(*chain.files, kDelta, chain.delta);
  return {'\0' + bytes, '\1' + bytes};
}

const AddTarget snapshot({"snapshot", RunWhole, WholeSeeds});
const AddTarget delta({"delta", RunDelta, DeltaSeeds});

}  // namespace
}  // namespace hdps::fuzz
