// Measures rows of FlatRows found by key, as serving finds those of a request, beside copies of the
// same rows from known addresses.
#include <glog/logging.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/bench.h"
#include "common/base/hash.h"
#include "common/base/shard_map.h"
#include "common/platform/random.h"
#include "embedding/flat_rows.h"

namespace hdps {
namespace {

constexpr char kBench[] = "flat_rows";
constexpr uint32_t kShards = 8;
constexpr size_t kKeys = size_t{26} * 32;  // Of one request: a batch of 32 rows of 26 features.
constexpr size_t kRequests = 500;

// The rows of a table in shards, and requests for some of them, of which each row is as frequent.
class Table {
 public:
  Table(uint32_t dim, uint64_t rows) : dim_(dim), weights_(kKeys * dim) {
    std::vector<std::vector<Key>> keys(kShards);
    for (uint64_t i = 0; i < rows; ++i) keys[ShardOfKey(MixBits(i))].push_back(MixBits(i));
    std::vector<float> row(dim, 1.0f);
    for (const std::vector<Key>& of_shard : keys) {
      auto& flat = shards_.emplace_back(std::make_unique<FlatRows>(WeightFormat::kFp32, dim));
      CHECK(flat->Begin(of_shard.size()).ok());
      for (const Key key : of_shard) CHECK(flat->Store({&key, 1}, row).ok());
      flat->Publish();
      flat->Settle();
    }
    Random random(dim);
    for (size_t i = 0; i < kRequests * kKeys; ++i) {
      keys_.push_back(MixBits(random.Below(rows)));
      of_.push_back(shards_[ShardOfKey(keys_.back())].get());
    }
    rows_.resize(keys_.size());
    FlatRows::ForEachFound(of_, keys_, [&](size_t k, const std::byte* found) {
      CHECK(found != nullptr);
      rows_[k] = found;
    });
  }

  // Both return rows/s.
  double Find() {
    return RowsPerSecond([&](size_t begin) {
      const std::span<const FlatRows* const> of(of_.data() + begin, kKeys);
      FlatRows::ForEachFound(
          of, std::span(keys_).subspan(begin, kKeys), [&](size_t k, const std::byte* row) {
            of[k]->ReadWeightsOf(row, std::span(weights_).subspan(k * dim_, dim_));
          });
    });
  }
  double Copy() {
    constexpr size_t kRowsAhead = 32, kLineBytes = 64;
    const size_t bytes = dim_ * sizeof(float);
    return RowsPerSecond([&](size_t begin) {
      const std::byte* const* const rows = rows_.data() + begin;
      const auto prefetch = [&](size_t k) {
        for (size_t at = 0; at < bytes; at += kLineBytes) __builtin_prefetch(rows[k] + at);
        __builtin_prefetch(rows[k] + sizeof(Key) + bytes - 1);
      };
      for (size_t k = 0; k < kRowsAhead; ++k) prefetch(k);
      for (size_t k = 0; k < kKeys; ++k) {
        if (k + kRowsAhead < kKeys) prefetch(k + kRowsAhead);
        std::memcpy(&weights_[k * dim_], rows[k] + sizeof(Key), bytes);
      }
    });
  }

 private:
  static uint32_t ShardOfKey(Key key) { return ShardOf(key, ShardBy::kKey, kShards).value; }
  template <typename Work>
  static double RowsPerSecond(const Work& work) {
    const double seconds = SecondsOf([&] {
      for (size_t r = 0; r < kRequests; ++r) work(r * kKeys);
    });
    return static_cast<double>(kRequests * kKeys) / seconds;
  }

  const uint32_t dim_;
  std::vector<std::unique_ptr<FlatRows>> shards_;
  std::vector<Key> keys_;               // [kRequests, kKeys]
  std::vector<const FlatRows*> of_;     // [kRequests, kKeys]
  std::vector<const std::byte*> rows_;  // [kRequests, kKeys]
  std::vector<float> weights_;          // [kKeys, dim]
};

}  // namespace

Status RunFlatRowsBench(const BenchSetting& setting, FileSystem&, BenchReport& report) {
  for (const auto& [dim, rows] :
       {std::pair(1u, 8'000'000u), {16u, 4'000'000u}, {64u, 1'000'000u}}) {
    const std::string name = "dim" + std::to_string(dim);
    if (!setting.Wants(name)) continue;
    PrintProgress(kBench, name);
    Table table(dim, setting.quick ? rows / 8 : rows);
    const auto samples = InterleavedSamples(
        setting.repeats, {[&] { return table.Find() / 1e6; }, [&] { return table.Copy() / 1e6; }});
    report.AddBeside(kBench, name, "find", "M rows/s", samples[0], "copies of known rows",
                     samples[1]);
  }
  return {};
}

}  // namespace hdps
