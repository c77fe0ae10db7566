// Measures rows read, updated and created in memory, beside walks over the same cache lines with
// known addresses: with the lines of the index that a lookup must read, and over the rows alone.
#include <glog/logging.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/bench.h"
#include "benchmarks/cases/tables/table_growth.h"
#include "benchmarks/cases/tables/table_joined.h"
#include "benchmarks/clusters/row_load.h"
#include "common/base/shard_map.h"
#include "common/job/optimizers/optimizers.h"
#include "common/platform/executor.h"
#include "embedding/memory/optimizer.h"
#include "embedding/memory/weight_format.h"
#include "embedding/table.h"

namespace hdps {
namespace {

constexpr char kBench[] = "table";
constexpr uint32_t kShards = 32;
constexpr double kZipf = 1.05;
constexpr size_t kDraws = size_t{26} * 4096;  // Keys of one request: a batch of 4096 examples.
constexpr size_t kRequests = 16;
constexpr size_t kLineBytes = 64;
constexpr float kGradient = 0x1p-10f;

struct Case {
  OptimizerKind rule;
  uint32_t dim;
  uint64_t rows;
  WeightFormat weights = WeightFormat::kFp32;
};
// The largest takes 8 GiB with its rule and dim.
constexpr Case kCases[] = {
    {OptimizerKind::kRowwiseAdagrad, 16, 20'000'000},
    {OptimizerKind::kRowwiseAdagrad, 64, 20'000'000},
    {OptimizerKind::kRowwiseAdagrad, 80, 20'000'000},
    {OptimizerKind::kSgd, 16, 20'000'000},
    {OptimizerKind::kSgd, 64, 20'000'000},
    {OptimizerKind::kLazyAdam, 16, 20'000'000},
    {OptimizerKind::kLazyAdam, 64, 5'000'000},
    {OptimizerKind::kRowwiseAdagrad, 64, 20'000'000, WeightFormat::kFp16},
    {OptimizerKind::kRowwiseAdagrad, 64, 20'000'000, WeightFormat::kBf16},
    {OptimizerKind::kRowwiseAdagrad, 16, 20'000'000, WeightFormat::kBf16},
};

// Sizes after an epoch of a small job.
constexpr Case kNewCases[] = {
    {OptimizerKind::kAdagrad, 80, 1'000'000},
    {OptimizerKind::kAdagrad, 16, 2'000'000},
};

TableSpec SpecOf(const Case& c) {
  TableSpec spec;
  spec.name = "rows";
  spec.dim = c.dim;
  spec.optimizer.record = &RecordOf(c.rule);
  spec.weights = c.weights;
  spec.init = {InitKind::kNormal, 0.01f};
  return spec;
}

std::string NameOf(const Case& c) {
  const char* const format = c.weights == WeightFormat::kFp32   ? ""
                             : c.weights == WeightFormat::kFp16 ? "_fp16"
                                                                : "_bf16";
  return std::string(OptimizerName(c.rule)) + "_dim" + std::to_string(c.dim) + format + "_" +
         std::to_string(c.rows / 1'000'000) + "M";
}

// The keys of one request by shard, and the addresses of their rows.
struct Request {
  std::vector<Key> keys;
  std::vector<std::byte*> rows;       // [keys]
  std::vector<const RowSlot*> slots;  // [keys]
  size_t begin[kShards + 1] = {};

  std::span<const Key> KeysOf(size_t shard) const {
    return std::span(keys).subspan(begin[shard], begin[shard + 1] - begin[shard]);
  }
};

Request CutByShard(const std::vector<Key>& keys) {
  std::vector<Key> of_shard[kShards];
  for (const Key key : keys) of_shard[ShardOf(key, ShardBy::kKey, kShards).value].push_back(key);
  Request request;
  for (size_t s = 0; s < kShards; ++s) {
    request.begin[s] = request.keys.size();
    request.keys.insert(request.keys.end(), of_shard[s].begin(), of_shard[s].end());
  }
  request.begin[kShards] = request.keys.size();
  return request;
}

// Returns all keys once, in an order unrelated to their frequency.
std::vector<Request> AllRequests(uint64_t rows) {
  const uint64_t span = std::bit_ceil(rows);
  std::vector<Request> requests;
  std::vector<Key> keys;
  for (uint64_t i = 0; i < span; ++i) {
    const uint64_t id = i * 0x9e3779b1u & (span - 1);
    if (id < rows) keys.push_back(MixBits(id));
    if (keys.size() < kDraws && i + 1 < span) continue;
    requests.push_back(CutByShard(keys));
    keys.clear();
  }
  return requests;
}

// How many keys ahead a walk prefetches lines: like the prototype that the goals come from, or as
// many as a core of this machine can have in flight.
enum class Ahead { kUsual, kFar };

// Reads a word of each line of the gradient, and writes one of each line of the row without
// changing it: `nothing` is 0, which the compiler does not know.
inline void Touch(uint32_t* __restrict row, const uint32_t* __restrict gradient, size_t dim,
                  size_t row_words, uint32_t nothing) {
  constexpr size_t kLineWords = kLineBytes / sizeof(uint32_t);
  uint32_t seen = 0;
  for (size_t i = 0; i < dim; i += kLineWords) seen |= gradient[i];
  for (size_t i = 0; i < row_words; i += kLineWords) row[i] |= seen & nothing;
}

// A table in slices, with the work of a server and a walk over its lines.
class Rows {
 public:
  explicit Rows(const Case& c)
      : case_(c),
        weight_bytes_(WeightBytes(c.weights, c.dim)),
        gradients_(kDraws * c.dim, kGradient),
        out_(kDraws * c.dim) {
    for (uint32_t s = 0; s < kShards; ++s) {
      slices_.emplace_back(SpecOf(c), TableId{0}, 1, RowPlacement{ShardId{s}, kShards, nullptr});
    }
  }

  uint64_t bytes() const {
    uint64_t bytes = 0;
    for (const TableSlice& slice : slices_) bytes += slice.bytes();
    return bytes;
  }
  // Pushes `requests` until no slot moves any more; before that, an address is valid only until the
  // next push.
  void Settle(Executor& executor, const std::vector<Request>& requests) {
    const auto growing = [](const TableSlice& slice) { return slice.memory().growing(); };
    while (std::any_of(slices_.begin(), slices_.end(), growing)) {
      for (const Request& request : requests) Push(executor, request);
    }
  }
  // Requires: Settle().
  void Locate(Request* request) const {
    request->rows.resize(request->keys.size());
    request->slots.resize(request->keys.size());
    for (size_t s = 0; s < kShards; ++s) {
      for (size_t k = request->begin[s]; k < request->begin[s + 1]; ++k) {
        const RowStore& memory = slices_[s].memory();
        CHECK(!memory.growing());
        request->slots[k] = memory.Find(request->keys[k]);
        request->rows[k] = memory.Row(request->slots[k]->row());
      }
    }
  }

  void Pull(Executor& executor, const Request& request) {
    executor.ParallelFor(
        kShards, [&](size_t s) { slices_[s].Read(request.KeysOf(s), case_.dim, Out(request, s)); });
  }
  void Push(Executor& executor, const Request& request) {
    ++step_;
    executor.ParallelFor(kShards, [&](size_t s) {
      const TableSlice::Gradients part{request.KeysOf(s), GradientsOf(request, s), 1};
      slices_[s].Apply({&part, 1}, 1, step_);
    });
  }
  // Reads and copies the lines of the weights; kIndex: after those of the index.
  template <bool kIndex, Ahead kPrefetch = Ahead::kUsual>
  void WalkPull(Executor& executor, const Request& request) {
    executor.ParallelFor(kShards, [&](size_t s) {
      float* out = out_.data() + request.begin[s] * case_.dim;
      Walk<kIndex, false, kPrefetch>(request, s, weight_bytes_, [&](const std::byte* row) {
        std::memcpy(out, row, weight_bytes_);
        out += case_.dim;
      });
    });
  }
  // Writes all lines of the rows without changing them, and reads the gradients; kMark: also writes
  // the lines of the index, as an update stores its number there.
  template <bool kIndex, bool kMark = false, Ahead kPrefetch = Ahead::kUsual>
  void WalkPush(Executor& executor, const Request& request) {
    const size_t row_bytes = slices_[0].memory().row_bytes();
    const uint32_t nothing = nothing_;
    executor.ParallelFor(kShards, [&](size_t s) {
      const float* gradient = gradients_.data() + request.begin[s] * case_.dim;
      Walk<kIndex, kMark, kPrefetch>(request, s, row_bytes, [&](std::byte* row) {
        Touch(reinterpret_cast<uint32_t*>(row), reinterpret_cast<const uint32_t*>(gradient),
              case_.dim, row_bytes / sizeof(uint32_t), nothing);
        gradient += case_.dim;
      });
    });
  }

 private:
  std::span<float> Out(const Request& request, size_t s) {
    return std::span(out_).subspan(request.begin[s] * case_.dim,
                                   request.KeysOf(s).size() * case_.dim);
  }
  std::span<const float> GradientsOf(const Request& request, size_t s) const {
    return std::span(gradients_)
        .subspan(request.begin[s] * case_.dim, request.KeysOf(s).size() * case_.dim);
  }
  template <bool kIndex, bool kMark, Ahead kPrefetch, typename Use>
  void Walk(const Request& request, size_t s, size_t bytes, const Use& use) {
    const bool is_short = bytes <= 2 * kLineBytes;
    const size_t rows_ahead = kPrefetch == Ahead::kUsual ? 16 : is_short ? 64 : 24;
    const size_t index_ahead = 2 * rows_ahead;
    std::byte* const* const rows = request.rows.data();
    const RowSlot* const* const slots = request.slots.data();
    const size_t end = request.begin[s + 1];
    uint32_t seen = 0;
    for (size_t k = request.begin[s]; k < end; ++k) {
      if constexpr (kIndex) {
        __builtin_prefetch(slots[std::min(k + index_ahead, end - 1)]);
        const RowSlot* const slot = slots[std::min(k + rows_ahead, end - 1)];
        seen |= slot->version;
        if constexpr (kMark) const_cast<RowSlot*>(slot)->version |= nothing_;
      }
      const std::byte* const ahead = rows[std::min(k + rows_ahead, end - 1)];
      for (size_t at = 0; at < bytes; at += kLineBytes) __builtin_prefetch(ahead + at);
      use(rows[k]);
    }
    if (seen == ~0u) nothing_ = 0;  // Never true, but it uses what was read.
  }

  const Case case_;
  const size_t weight_bytes_;
  std::vector<TableSlice> slices_;
  std::vector<float> gradients_, out_;
  int64_t step_ = 0;
  volatile uint32_t nothing_ = 0;
};

// Returns the rows per second of `work` over all requests.
template <typename Work>
double RowsPerSecond(const std::vector<Request>& requests, const Work& work) {
  size_t keys = 0;
  for (const Request& request : requests) keys += request.keys.size();
  return static_cast<double>(keys) / SecondsOf([&] {
           for (const Request& request : requests) work(request);
         });
}

void MeasureLoad(const BenchSetting& setting, const Case& c, const std::string& load,
                 double exponent, Rows& rows, BenchReport& report) {
  std::vector<Request> requests;
  for (const auto& [keys, shard_begin] : ZipfLists(c.rows, exponent, kDraws, kRequests, 7)) {
    requests.push_back(CutByShard(keys));
  }
  rows.Settle(*NewTbbExecutor(0), requests);
  for (Request& request : requests) rows.Locate(&request);
  for (const int threads : {1, 2}) {
    const std::string name = NameOf(c) + "_" + load + "_" + std::to_string(threads) + "t";
    if (!setting.Wants(name)) continue;
    PrintProgress(kBench, name);
    const std::unique_ptr<Executor> executor = NewTbbExecutor(threads);
    const auto rate = [&](void (Rows::*work)(Executor&, const Request&)) {
      return RowsPerSecond(requests, [&](const Request& r) { (rows.*work)(*executor, r); });
    };
    const auto samples = InterleavedSamples(
        setting.repeats,
        {[&] { return rate(&Rows::Pull); }, [&] { return rate(&Rows::WalkPull<true>); },
         [&] { return rate(&Rows::WalkPull<false>); }, [&] { return rate(&Rows::Push); },
         [&] { return rate(&Rows::WalkPush<true>); }, [&] { return rate(&Rows::WalkPush<false>); },
         [&] { return rate(&Rows::WalkPush<true, true>); },
         [&] { return rate(&Rows::WalkPull<true, Ahead::kFar>); },
         [&] { return rate(&Rows::WalkPush<true, true, Ahead::kFar>); }});
    constexpr char kSame[] = "the same lines", kRows[] = "the rows' lines alone";
    report.AddBeside(kBench, name, "pull", "rows/s", samples[0], kSame, samples[1]);
    report.AddBeside(kBench, name, "pull", "rows/s", samples[0], kRows, samples[2]);
    report.AddBeside(kBench, name, "pull", "rows/s", samples[0],
                     "the same lines, asked for far ahead", samples[7]);
    report.AddBeside(kBench, name, "push", "rows/s", samples[3], kSame, samples[4]);
    report.AddBeside(kBench, name, "push", "rows/s", samples[3],
                     "the same lines, the index's changed too", samples[6]);
    report.AddBeside(kBench, name, "push", "rows/s", samples[3], "the same, asked for far ahead",
                     samples[8]);
    report.AddBeside(kBench, name, "push", "rows/s", samples[3], kRows, samples[5]);
  }
}

void RunCase(const BenchSetting& setting, Case c, BenchReport& report) {
  if (setting.quick) c.rows /= 5;
  const auto wanted = [&](const char* load) {
    return setting.Wants(NameOf(c) + load + "_1t") || setting.Wants(NameOf(c) + load + "_2t");
  };
  if (!wanted("_zipf") && !wanted("_uniform") && !setting.Wants(NameOf(c) + "_insert")) return;
  PrintProgress(kBench, NameOf(c) + ": making the rows");
  Rows rows(c);
  const std::vector<Request> all = AllRequests(c.rows);
  const std::unique_ptr<Executor> executor = NewTbbExecutor(0);
  report.Add(kBench, NameOf(c) + "_insert", "insert", "rows/s",
             {RowsPerSecond(all, [&](const Request& r) { rows.Push(*executor, r); })});
  report.Add(kBench, NameOf(c) + "_insert", "bytes a row", "B",
             {static_cast<double>(rows.bytes()) / static_cast<double>(c.rows)});
  MeasureLoad(setting, c, "zipf", kZipf, rows, report);
  MeasureLoad(setting, c, "uniform", 0, rows, report);
}

// Returns the seconds to touch as much fresh memory as rows took, allocated like a store does.
double SecondsToTouch(Executor& executor, uint64_t bytes) {
  constexpr size_t kPageBytes = 4096;
  std::vector<PageMemory> pieces(kShards);
  return SecondsOf([&] {
    executor.ParallelFor(kShards, [&](size_t s) {
      pieces[s] = PageMemory(bytes / kShards);
      pieces[s].AskForHugePages(0, pieces[s].size());
      for (size_t at = 0; at < pieces[s].size(); at += kPageBytes) pieces[s].data()[at] = {};
    });
  });
}

// Measures a server's work in the first epoch: rows are read before they exist, then created, again
// and again from an empty table. Its memory is new to the process each time.
void RunInsert(const BenchSetting& setting, Case c, BenchReport& report) {
  const std::string name = std::string("new_rows_") + NameOf(c);
  if (setting.quick) c.rows /= 4;
  const std::vector<Request> all = AllRequests(c.rows);
  for (const int threads : {1, 2}) {
    const std::string own = name + "_" + std::to_string(threads) + "t";
    if (!setting.Wants(own)) continue;
    PrintProgress(kBench, own);
    const std::unique_ptr<Executor> executor = NewTbbExecutor(threads);
    std::vector<double> pulls, inserts, again, touches, bytes;
    for (int repeat = 0; repeat < setting.repeats; ++repeat) {
      {
        Rows rows(c);
        const auto rate = [&](void (Rows::*work)(Executor&, const Request&)) {
          return RowsPerSecond(all, [&](const Request& r) { (rows.*work)(*executor, r); });
        };
        pulls.push_back(rate(&Rows::Pull));
        inserts.push_back(rate(&Rows::Push));
        again.push_back(rate(&Rows::Push));
        bytes.push_back(static_cast<double>(rows.bytes()));
      }
      touches.push_back(static_cast<double>(c.rows) /
                        SecondsToTouch(*executor, static_cast<uint64_t>(bytes.back())));
    }
    for (double& b : bytes) b /= static_cast<double>(c.rows);
    report.Add(kBench, own, "pull of rows that are not there", "rows/s", pulls);
    report.AddBeside(kBench, own, "made and updated", "rows/s", inserts,
                     "their fresh memory touched", touches);
    report.AddBeside(kBench, own, "made and updated", "rows/s", inserts, "updated again", again);
    report.Add(kBench, own, "bytes a row", "B", bytes);
  }
}

}  // namespace

Status RunTableBench(const BenchSetting& setting, FileSystem&, BenchReport& report) {
  for (const Case& c : kCases) RunCase(setting, c, report);
  for (const Case& c : kNewCases) RunInsert(setting, c, report);
  RunTableGrowth(setting, report);
  RunTableJoined(setting, report);
  return Status();
}

}  // namespace hdps
