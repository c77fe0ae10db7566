// One kernel distributes uploaded pieces to their places, another packs what is downloaded.
#include "kernels/cuda/cuda_staging.cuh"

#include <algorithm>
#include <cstring>
#include <utility>

namespace hdps {
namespace {

constexpr size_t kAlignment = 16;  // Alignment of pieces in an arena: words move four at a time.
constexpr size_t kWordsABlock = 8192;  // Eight times four words a thread.
constexpr size_t kBlocksMax = 4096;
// Bytes that one task copies within the host's memory.
constexpr size_t kCopyBytes = size_t{1} << 20;

size_t AlignedUp(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// blockIdx.y is the piece. Unpacks the arena into the pieces, or packs them.
template <bool kUnpack>
__global__ void MovePieces(StagedPieces all, uint32_t* arena) {
  const StagedPiece& piece = all.pieces[blockIdx.y];
  uint32_t* const packed = arena + piece.at;
  const size_t words = size_t{piece.row_words} * piece.rows;
  const size_t first = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const size_t threads = size_t{gridDim.x} * blockDim.x;
  const bool straight = piece.rows == 1 || piece.stride == piece.row_words;
  if (straight && reinterpret_cast<uintptr_t>(piece.words) % kAlignment == 0) {
    auto* const four = reinterpret_cast<uint4*>(piece.words);
    auto* const packed_four = reinterpret_cast<uint4*>(packed);
    for (size_t i = first; i < words / 4; i += threads) {
      if (kUnpack) {
        four[i] = packed_four[i];
      } else {
        packed_four[i] = four[i];
      }
    }
    const size_t rest = words / 4 * 4 + first;
    if (rest < words) {
      if (kUnpack) {
        piece.words[rest] = packed[rest];
      } else {
        packed[rest] = piece.words[rest];
      }
    }
    return;
  }
  for (size_t i = first; i < words; i += threads) {
    uint32_t& there = piece.words[i / piece.row_words * piece.stride + i % piece.row_words];
    if (kUnpack) {
      there = packed[i];
    } else {
      packed[i] = there;
    }
  }
}

template <bool kUnpack>
void LaunchMoves(cudaStream_t stream, const std::vector<StagedPiece>& pieces, uint32_t* arena) {
  for (size_t first = 0; first < pieces.size(); first += kPiecesALaunch) {
    StagedPieces some = {};
    const size_t count = std::min<size_t>(kPiecesALaunch, pieces.size() - first);
    size_t most = 1;
    for (size_t i = 0; i < count; ++i) {
      some.pieces[i] = pieces[first + i];
      most = std::max(most, size_t{some.pieces[i].row_words} * some.pieces[i].rows);
    }
    const size_t blocks = std::min(kBlocksMax, (most + kWordsABlock - 1) / kWordsABlock);
    const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(count));
    StartKernel(MovePieces<kUnpack>, grid, kThreadsABlock, stream, some, arena);
  }
}

}  // namespace

PinnedMemory::~PinnedMemory() {
  if (data_ != nullptr) cudaFreeHost(data_);
}

std::byte* PinnedMemory::Reserve(size_t bytes, size_t kept) {
  if (bytes <= size_) return data_;
  const size_t size = std::max(bytes, size_ + size_ / 2);
  void* data = nullptr;
  const cudaError_t error = cudaMallocHost(&data, size);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw DeviceMemoryFull("the host has no " + ShowByteCount(size) +
                           " of memory to pin for the GPU" + kNeedLessDeviceMemory);
  }
  HDPS_CUDA_CHECK(error);
  if (data_ != nullptr) {
    std::memcpy(data, data_, kept);
    HDPS_CUDA_CHECK(cudaFreeHost(data_));
  }
  data_ = static_cast<std::byte*>(data);
  size_ = size;
  return data_;
}

void CudaStaging::CopyOnHost(const std::byte* from, size_t bytes, std::byte* to) {
  ForEach((bytes + kCopyBytes - 1) / kCopyBytes, [&](size_t i) {
    const size_t begin = i * kCopyBytes;
    std::memcpy(to + begin, from + begin, std::min(kCopyBytes, bytes - begin));
  });
}

void CudaStaging::ForEach(size_t count, const std::function<void(size_t)>& body) const {
  if (executor_ != nullptr && count > 1) return executor_->ParallelFor(count, body);
  for (size_t i = 0; i < count; ++i) body(i);
}

bool CudaStaging::Awaited(const std::byte* begin, const std::byte* end) const {
  return std::ranges::any_of(up_pieces_, [&](const StagedPiece& piece) {
    const auto* const first = reinterpret_cast<const std::byte*>(piece.words);
    const size_t words = size_t{piece.stride} * (piece.rows - 1) + piece.row_words;
    return first < end && begin < first + words * sizeof(uint32_t);
  });
}

void CudaStaging::UploadRows(const void* from, size_t row_bytes, size_t rows, void* to,
                             size_t stride_bytes) {
  if (row_bytes * rows == 0) return;
  std::byte* const place = AddPiece(row_bytes, rows, to, stride_bytes);
  CopyOnHost(static_cast<const std::byte*>(from), row_bytes * rows, place);
}

std::byte* CudaStaging::AddPiece(size_t row_bytes, size_t rows, void* to, size_t stride_bytes) {
  constexpr size_t kWord = sizeof(uint32_t);
  const size_t bytes = row_bytes * rows;
  if (bytes == 0) return nullptr;
  // The pieces of one copy are distributed in any order.
  const auto* const begin = static_cast<const std::byte*>(to);
  if (Awaited(begin, begin + stride_bytes * (rows - 1) + row_bytes)) SendUp();
  CHECK_EQ(row_bytes % kWord, 0u);
  CHECK_EQ(stride_bytes % kWord, 0u);
  CHECK_LT(row_bytes / kWord, size_t{1} << 32);
  UpArena& arena = up_[filling_];
  if (up_pieces_.empty()) {  // Waits for its last copy.
    capture_.Launch();
    HDPS_CUDA_CHECK(cudaEventSynchronize(arena.read));
  }
  const size_t at = AlignedUp(up_bytes_);
  std::byte* const host = arena.host.Reserve(at + bytes, up_bytes_);
  up_bytes_ = at + bytes;
  up_pieces_.push_back({static_cast<uint32_t*>(to), at / kWord,
                        static_cast<uint32_t>(row_bytes / kWord), static_cast<uint32_t>(rows),
                        static_cast<uint32_t>(stride_bytes / kWord)});
  return host + at;
}

void CudaStaging::SendUp() {
  using enum DeviceSpan::Kind;
  UpArena& arena = up_[filling_];
  const size_t words = AlignedUp(up_bytes_) / sizeof(uint32_t);
  capture_.Launch();
  timeline_.End(kCompute, compute_);
  if (words > arena.device.size()) HDPS_CUDA_CHECK(cudaEventSynchronize(arena.used));
  uint32_t* const device = arena.device.Reserve(words);
  HDPS_CUDA_CHECK(cudaStreamWaitEvent(up_stream_, arena.used, 0));
  timeline_.Begin(kCopyUp, up_stream_);
  HDPS_CUDA_CHECK(
      cudaMemcpyAsync(device, arena.host.data(), up_bytes_, cudaMemcpyHostToDevice, up_stream_));
  timeline_.End(kCopyUp, up_stream_);
  HDPS_CUDA_CHECK(cudaEventRecord(arena.read, up_stream_));
  HDPS_CUDA_CHECK(cudaStreamWaitEvent(compute_, arena.read, 0));
  capture_.Begin();
  LaunchMoves<true>(compute_, up_pieces_, device);
  capture_.Record(arena.used);
  traffic_.up_bytes += up_bytes_;
  ++traffic_.up_copies;
  up_pieces_.clear();
  up_bytes_ = 0;
  filling_ = 1 - filling_;
}

uint32_t* CudaStaging::SpaceOf(size_t bytes) {
  if (spaces_used_ == spaces_.size()) {
    spaces_.push_back(std::make_unique<CudaArray<uint32_t>>(capture_));
  }
  return spaces_[spaces_used_++]->Reserve((bytes + sizeof(uint32_t) - 1) / sizeof(uint32_t));
}

void CudaStaging::FetchLater(const void* from, size_t bytes, Take take) {
  CHECK_EQ(bytes % sizeof(uint32_t), 0u);
  if (bytes > 0) fetches_.push_back({from, bytes, std::move(take)});
}

void CudaStaging::FetchLater(const void* from, size_t bytes, void* to) {
  FetchLater(from, bytes, [this, bytes, to](const std::byte* words) {
    CopyOnHost(words, bytes, static_cast<std::byte*>(to));
  });
}

void CudaStaging::StartFetches() {
  CHECK(started_.empty()) << "EndFetches() comes between two StartFetches()";
  Flush();
  if (fetches_.empty()) return;
  started_.swap(fetches_);
  constexpr size_t kWord = sizeof(uint32_t);
  std::vector<StagedPiece> pieces;
  size_t bytes = 0;
  for (const Fetch& fetch : started_) {
    const auto words = static_cast<uint32_t>(fetch.bytes / kWord);
    auto* const from = static_cast<uint32_t*>(const_cast<void*>(fetch.from));
    pieces.push_back({from, bytes / kWord, words, 1, words});
    bytes = AlignedUp(bytes + fetch.bytes);
  }
  uint32_t* const device = down_device_.Reserve(bytes / kWord);
  if (bytes > down_host_.size()) capture_.Pause();
  std::byte* const host = down_host_.Reserve(bytes, 0);
  using enum DeviceSpan::Kind;
  LaunchMoves<false>(compute_, pieces, device);
  capture_.Launch();
  timeline_.End(kCompute, compute_);
  HDPS_CUDA_CHECK(cudaEventRecord(packed_, compute_));
  HDPS_CUDA_CHECK(cudaStreamWaitEvent(down_stream_, packed_, 0));
  timeline_.Begin(kCopyDown, down_stream_);
  HDPS_CUDA_CHECK(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, down_stream_));
  timeline_.End(kCopyDown, down_stream_);
  HDPS_CUDA_CHECK(cudaEventRecord(arrived_, down_stream_));
  traffic_.down_bytes += bytes;
  ++traffic_.down_copies;
}

void CudaStaging::EndFetches() {
  if (started_.empty()) return;
  capture_.Launch();  // It runs while the host waits.
  timeline_.End(DeviceSpan::Kind::kCompute, compute_);
  HDPS_CUDA_CHECK(cudaEventSynchronize(arrived_));
  const std::byte* at = down_host_.data();
  for (const Fetch& fetch : std::exchange(started_, {})) {
    fetch.take(at);
    at += AlignedUp(fetch.bytes);
  }
  if (fetches_.empty()) spaces_used_ = 0;
}

}  // namespace hdps
