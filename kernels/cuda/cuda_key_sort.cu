// A stable radix sort, four bits a pass: each thread counts its digits, the counts are summed over
// all threads, and each thread then knows where its keys of each digit begin. Counts are integers,
// so the order in which blocks run has no effect.
#include "kernels/cuda/cuda_key_sort.cuh"

#include <utility>

namespace hdps {
namespace {

constexpr uint32_t kDigitBits = 4;
constexpr uint32_t kDigits = 1u << kDigitBits;
constexpr uint32_t kKeysAThread = 8;
constexpr uint32_t kKeysABlock = kKeysAThread * kThreadsABlock;

// One pass: rows and positions by the bits from `shift` on.
struct SortPass {
  const uint32_t* rows;
  const uint32_t* positions;  // Null: 0, 1, ...
  size_t n;
  uint32_t shift;
  uint32_t* counts;  // [digits, blocks], then where the keys of each digit begin.
  uint32_t* to_rows;
  uint32_t* to_positions;

  __device__ uint32_t DigitOf(size_t i) const { return rows[i] >> shift & (kDigits - 1); }
  __device__ size_t FirstOfThread() const {
    return size_t{blockIdx.x} * kKeysABlock + threadIdx.x * kKeysAThread;
  }
  // of_threads [digits, threads] of the block.
  __device__ void CountOwn(uint32_t (*of_threads)[kThreadsABlock]) const {
    for (uint32_t d = 0; d < kDigits; ++d) of_threads[d][threadIdx.x] = 0;
    const size_t first = FirstOfThread();
    for (size_t i = first; i < first + kKeysAThread && i < n; ++i) {
      ++of_threads[DigitOf(i)][threadIdx.x];
    }
  }
};

__global__ void CountDigits(SortPass pass) {
  __shared__ uint32_t of_threads[kDigits][kThreadsABlock];
  pass.CountOwn(of_threads);
  __syncthreads();
  if (threadIdx.x >= kDigits) return;
  uint32_t sum = 0;
  for (uint32_t t = 0; t < kThreadsABlock; ++t) sum += of_threads[threadIdx.x][t];
  pass.counts[size_t{threadIdx.x} * gridDim.x + blockIdx.x] = sum;
}

// One block: turns each count into the sum of those before it.
__global__ void AddUpCounts(uint32_t* counts, size_t n) {
  __shared__ uint32_t sums[kThreadsABlock];
  const size_t each = (n + kThreadsABlock - 1) / kThreadsABlock;
  const size_t begin = threadIdx.x * each, end = begin + each < n ? begin + each : n;
  uint32_t own = 0;
  for (size_t i = begin; i < end; ++i) own += counts[i];
  sums[threadIdx.x] = own;
  __syncthreads();
  uint32_t before = 0;
  for (uint32_t t = 0; t < threadIdx.x; ++t) before += sums[t];
  for (size_t i = begin; i < end; ++i) {
    const uint32_t count = counts[i];
    counts[i] = before;
    before += count;
  }
}

__global__ void PlaceKeys(SortPass pass) {
  __shared__ uint32_t of_threads[kDigits][kThreadsABlock];
  pass.CountOwn(of_threads);
  __syncthreads();
  if (threadIdx.x < kDigits) {
    uint32_t next = pass.counts[size_t{threadIdx.x} * gridDim.x + blockIdx.x];
    for (uint32_t t = 0; t < kThreadsABlock; ++t) {
      const uint32_t count = of_threads[threadIdx.x][t];
      of_threads[threadIdx.x][t] = next;
      next += count;
    }
  }
  __syncthreads();
  const size_t first = pass.FirstOfThread();
  for (size_t i = first; i < first + kKeysAThread && i < pass.n; ++i) {
    const uint32_t to = of_threads[pass.DigitOf(i)][threadIdx.x]++;
    pass.to_rows[to] = pass.rows[i];
    pass.to_positions[to] =
        pass.positions == nullptr ? static_cast<uint32_t>(i) : pass.positions[i];
  }
}

// Sets row_offsets[r] to the number of sorted rows below r.
__global__ void FindRowOffsets(const uint32_t* sorted, size_t n, uint32_t num_rows,
                               uint32_t* row_offsets) {
  const size_t r = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (r > num_rows) return;
  size_t begin = 0, end = n;
  while (begin < end) {
    const size_t middle = (begin + end) / 2;
    if (sorted[middle] < r) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  row_offsets[r] = static_cast<uint32_t>(begin);
}

}  // namespace

void CudaKeySort::Sort(cudaStream_t stream, const uint32_t* rows, size_t n, uint32_t num_rows) {
  const auto blocks = static_cast<unsigned>((n + kKeysABlock - 1) / kKeysABlock);
  SortPass pass{rows, nullptr, n, 0, counts_.Reserve(size_t{kDigits} * blocks), nullptr, nullptr};
  uint32_t* const offsets = row_offsets_.Reserve(size_t{num_rows} + 1);
  positions_ = sorted_positions_[0].Reserve(n);
  size_t into = 0;
  do {
    if (n == 0) break;
    pass.to_rows = sorted_rows_[into].Reserve(n);
    pass.to_positions = sorted_positions_[into].Reserve(n);
    StartKernel(CountDigits, blocks, kThreadsABlock, stream, pass);
    StartKernel(AddUpCounts, 1, kThreadsABlock, stream, pass.counts, size_t{kDigits} * blocks);
    StartKernel(PlaceKeys, blocks, kThreadsABlock, stream, pass);
    pass.rows = pass.to_rows;
    positions_ = pass.positions = pass.to_positions;
    pass.shift += kDigitBits;
    into = 1 - into;
  } while (pass.shift < 32 && num_rows > 0 && (num_rows - 1) >> pass.shift != 0);
  sorted_ = pass.rows;
  StartKernel(FindRowOffsets, BlocksFor(size_t{num_rows} + 1), kThreadsABlock, stream, pass.rows, n,
              num_rows, offsets);
}

}  // namespace hdps
