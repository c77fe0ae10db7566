// Keeps four tiles of sums in registers while two of each operand are loaded.
#include "kernels/products/tile_gemm.h"

#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "kernels/host/float_memory.h"
#include "kernels/host/half_floats.h"
#include "kernels/vector_width.h"

#define HDPS_AMX  \
  __attribute__(( \
      target("avx2,fma,f16c,avx512f,avx512vl,avx512bw,avx512dq,avx512bf16,amx-tile,amx-bf16")))

namespace hdps {
namespace {

constexpr size_t kBlockNumbers = 2 * kTileNumbers;
constexpr size_t kBlockSums = kBlockSide * kBlockSide;
// Blocks of depth in a chunk: its right operand, 2 KiB a block, stays in the first-level cache next
// to that of the following columns, which is prefetched meanwhile.
constexpr size_t kChunkBlocks = 8;
constexpr size_t kLineBytes = 64, kBlockLines = kBlockNumbers * sizeof(uint16_t) / kLineBytes;

// The left operand of 32 rows: `blocks` of depth, then one more at `tail` unless that is null.
struct LeftBlock {
  const uint16_t* data = nullptr;
  size_t row_bytes = 0, lower = 0, next = 0;  // To the next row; numbers to the lower tile, to the
                                              // next block of depth.
  size_t blocks = 0;
  const uint16_t* tail = nullptr;  // Null, or one block in tiles.
};
// What is prefetched while a block of depth is multiplied: `lines` cache lines, then the next.
struct Ahead {
  const char* data = nullptr;
  size_t lines = 0;
};

LeftBlock InTiles(const uint16_t* data, size_t blocks) {
  return {data, kTileDepth * sizeof(uint16_t), kTileNumbers, kBlockNumbers, blocks, nullptr};
}

// A thread's memory, which grows.
class Scratch {
 public:
  float* Floats(size_t count) {
    if (count > size_) {
      data_ = AllocateFloats(count);
      size_ = count;
    }
    return data_.get();
  }
  uint16_t* Numbers(size_t count) { return reinterpret_cast<uint16_t*>(Floats((count + 1) / 2)); }

 private:
  FloatMemory data_;
  size_t size_ = 0;
};

// Finds the left operand of each 32 rows of a piece; parts where a tile would extend beyond it are
// copied and padded with zeros.
class LeftOperand {
 public:
  LeftOperand(const TileProduct& product, size_t row, size_t rows, Scratch& scratch)
      : product_(product), depth_blocks_(product.right.depth_blocks), row_(row) {
    if (product.left.data == nullptr) return;
    const Bf16Matrix& left = product.left;
    full_blocks_ = left.cols / kTileDepth;
    const size_t full_rows = rows / kBlockSide;
    const size_t tail = full_blocks_ == depth_blocks_ ? 0 : 1;
    const size_t last = rows % kBlockSide == 0 ? 0 : depth_blocks_;
    copies_ = scratch.Numbers((full_rows * tail + last) * kBlockNumbers);
    for (size_t b = 0; b < full_rows * tail; ++b) {
      CopyBlock(left, row + b * kBlockSide, full_blocks_, copies_ + b * kBlockNumbers);
    }
    last_ = copies_ + full_rows * tail * kBlockNumbers;
    for (size_t d = 0; d < last; ++d) {
      CopyBlock(left, row + full_rows * kBlockSide, d, last_ + d * kBlockNumbers);
    }
  }

  LeftBlock At(size_t block) const {
    const size_t row = row_ + block * kBlockSide;
    if (product_.left.data == nullptr) {
      return InTiles(product_.left_tiles.Block(row / kBlockSide, 0), depth_blocks_);
    }
    const Bf16Matrix& left = product_.left;
    if (row + kBlockSide > left.rows) return InTiles(last_, depth_blocks_);
    const bool tail = full_blocks_ < depth_blocks_;
    return {left.Row(row),
            left.stride * sizeof(uint16_t),
            kTileSide * left.stride,
            kTileDepth,
            full_blocks_,
            tail ? copies_ + block * kBlockNumbers : nullptr};
  }

 private:
  static void CopyBlock(Bf16Matrix left, size_t row, size_t depth_block, uint16_t* to) {
    const size_t first = depth_block * kTileDepth;
    const size_t count = std::min(kTileDepth, left.cols - first);
    std::fill_n(to, kBlockNumbers, uint16_t{0});
    for (size_t i = 0; i < kBlockSide && row + i < left.rows; ++i) {
      std::copy_n(left.Row(row + i) + first, count, to + i * kTileDepth);
    }
  }

  const TileProduct& product_;
  size_t depth_blocks_, row_, full_blocks_ = 0;
  uint16_t *copies_ = nullptr, *last_ = nullptr;
};

// 32 x 32 sums, computed by loops for any machine.
class PlainTiles {
 public:
  void Begin() {}
  void End() {}
  void Zero() { std::fill_n(sums_, kBlockSums, 0.0f); }
  void Load(const float* from) { std::copy_n(from, kBlockSums, sums_); }
  void Store(float* to) const { std::copy_n(sums_, kBlockSums, to); }
  void Add(const LeftBlock& left, size_t first, size_t count, const uint16_t* right, Ahead) {
    for (size_t d = first; d < first + count; ++d, right += kBlockNumbers) {
      for (size_t i = 0; i < kBlockSide; ++i) {
        const uint16_t* const row = left.data + d * left.next + i / kTileSide * left.lower +
                                    i % kTileSide * left.row_bytes / sizeof(uint16_t);
        for (size_t j = 0; j < kBlockSide; ++j) {
          const uint16_t* const tile = right + j / kTileSide * kTileNumbers + j % kTileSide * 2;
          for (size_t k = 0; k < kTileDepth; ++k) {
            sums_[i * kBlockSide + j] +=
                FromBf16(row[k]) * FromBf16(tile[k / 2 * kTileDepth + k % 2]);
          }
        }
      }
    }
  }
  static void Finish(const TileProduct& p, size_t row, size_t col, const float* sums) {
    const size_t rows = std::min(kBlockSide, p.c.rows() - row);
    const size_t cols = std::min(kBlockSide, p.c.cols() - col);
    for (size_t i = 0; i < rows; ++i) {
      for (size_t j = 0; j < cols; ++j) {
        float value = sums[i * kBlockSide + j];
        if (p.write == Write::kAdd) value += p.c.fp32.Row(row + i)[col + j];
        if (p.bias != nullptr) value += p.bias[col + j];
        if (p.relu) value = value > 0 ? value : 0;
        if (p.masked_by.data != nullptr) {
          const auto by = static_cast<int16_t>(p.masked_by.Row(row + i)[col + j]);
          value = by > 0 ? value : 0;
        }
        if (p.c.fp32.data != nullptr) {
          p.c.fp32.Row(row + i)[col + j] = value;
        } else {
          p.c.bf16.Row(row + i)[col + j] = NarrowToBf16(value);
        }
      }
    }
  }

 private:
  float sums_[kBlockSums];
};

// Configuration of the tile registers; 0 to 3 hold the sums.
struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

class AmxTiles {
 public:
  HDPS_AMX void Begin() {
    static constexpr TileConfig kConfig;
    _tile_loadconfig(&kConfig);
  }
  HDPS_AMX void End() { _tile_release(); }
  HDPS_AMX void Zero() {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  HDPS_AMX void Load(const float* from) {
    _tile_loadd(0, from, kRowBytes);
    _tile_loadd(1, from + kTileSide, kRowBytes);
    _tile_loadd(2, from + kTileSide * kBlockSide, kRowBytes);
    _tile_loadd(3, from + kTileSide * kBlockSide + kTileSide, kRowBytes);
  }
  HDPS_AMX void Store(float* to) const {
    _tile_stored(0, to, kRowBytes);
    _tile_stored(1, to + kTileSide, kRowBytes);
    _tile_stored(2, to + kTileSide * kBlockSide, kRowBytes);
    _tile_stored(3, to + kTileSide * kBlockSide + kTileSide, kRowBytes);
  }
  HDPS_AMX void Add(const LeftBlock& left, size_t first, size_t count, const uint16_t* right,
                    Ahead ahead) {
    const uint16_t* upper = left.data + first * left.next;
    const size_t lower = left.lower, next = left.next, stride = left.row_bytes;
    for (size_t d = 0; d < count; ++d, upper += next, right += kBlockNumbers) {
      _tile_loadd(6, right, 64);
      _tile_loadd(4, upper, stride);
      _tile_loadd(7, right + kTileNumbers, 64);
      _tile_loadd(5, upper + lower, stride);
      for (size_t line = 0; line < ahead.lines; ++line, ahead.data += kLineBytes) {
        _mm_prefetch(ahead.data, _MM_HINT_T0);
      }
      _tile_dpbf16ps(0, 4, 6);
      _tile_dpbf16ps(1, 4, 7);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
  }
  HDPS_AMX static void Finish(const TileProduct& p, size_t row, size_t col, const float* sums) {
    const size_t rows = std::min(kBlockSide, p.c.rows() - row);
    const size_t cols = std::min(kBlockSide, p.c.cols() - col);
    const __mmask32 some = cols == kBlockSide ? ~__mmask32{0} : (__mmask32{1} << cols) - 1;
    const auto left = static_cast<__mmask16>(some), right = static_cast<__mmask16>(some >> 16);
    const __m512 zero = _mm512_setzero_ps();
    __m512 bias_left = zero, bias_right = zero;
    if (p.bias != nullptr) {
      bias_left = _mm512_maskz_loadu_ps(left, p.bias + col);
      bias_right = _mm512_maskz_loadu_ps(right, p.bias + col + kTileSide);
    }
    for (size_t i = 0; i < rows; ++i) {
      __m512 a = _mm512_load_ps(sums + i * kBlockSide);
      __m512 b = _mm512_load_ps(sums + i * kBlockSide + kTileSide);
      if (p.write == Write::kAdd) {
        a = _mm512_add_ps(a, _mm512_maskz_loadu_ps(left, p.c.fp32.Row(row + i) + col));
        b = _mm512_add_ps(b, _mm512_maskz_loadu_ps(right, p.c.fp32.Row(row + i) + col + kTileSide));
      }
      if (p.bias != nullptr) {
        a = _mm512_add_ps(a, bias_left);
        b = _mm512_add_ps(b, bias_right);
      }
      if (p.relu) {
        a = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(a, zero, _CMP_GT_OQ), a);
        b = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(b, zero, _CMP_GT_OQ), b);
      }
      if (p.masked_by.data != nullptr) {
        const __m512i by = _mm512_maskz_loadu_epi16(some, p.masked_by.Row(row + i) + col);
        const __mmask32 positive = _mm512_cmpgt_epi16_mask(by, _mm512_setzero_si512());
        a = _mm512_maskz_mov_ps(static_cast<__mmask16>(positive), a);
        b = _mm512_maskz_mov_ps(static_cast<__mmask16>(positive >> 16), b);
      }
      if (p.c.fp32.data != nullptr) {
        _mm512_mask_storeu_ps(p.c.fp32.Row(row + i) + col, left, a);
        _mm512_mask_storeu_ps(p.c.fp32.Row(row + i) + col + kTileSide, right, b);
      } else {
        const __m512bh both = _mm512_cvtne2ps_pbh(b, a);
        _mm512_mask_storeu_epi16(p.c.bf16.Row(row + i) + col, some, (__m512i)both);
      }
    }
  }

 private:
  static constexpr size_t kRowBytes = kBlockSide * sizeof(float);
};

// Multiplies a piece. A chunk of the right operand stays in the first-level cache while the piece's
// left operand, in the second-level cache, passes by.
template <typename Tiles>
void MultiplyPiece(const TileProduct& p, const TilePiece& piece) {
  thread_local Scratch left_memory, sums_memory;
  const size_t row_blocks = TiledOperand::Blocks(piece.rows);
  const size_t col_blocks = TiledOperand::Blocks(piece.cols);
  const size_t depth_blocks = p.right.depth_blocks;
  const size_t chunks = std::max<size_t>(1, (depth_blocks + kChunkBlocks - 1) / kChunkBlocks);
  const size_t chunk_blocks = (depth_blocks + chunks - 1) / chunks;
  const LeftOperand left(p, piece.row, piece.rows, left_memory);
  // With one chunk, no sums are kept for the next.
  float* const all = sums_memory.Floats(kBlockSums * (chunks == 1 ? 1 : row_blocks * col_blocks));
  Tiles tiles;
  tiles.Begin();
  for (size_t chunk = 0; chunk < chunks; ++chunk) {
    const size_t first = chunk * chunk_blocks, end = std::min(depth_blocks, first + chunk_blocks);
    for (size_t j = 0; j < col_blocks; ++j) {
      const uint16_t* const right = p.right.Block(piece.col / kBlockSide + j, first);
      // Each block of rows prefetches its part of the next columns' chunk.
      const bool more = j + 1 < col_blocks;
      Ahead ahead{
          reinterpret_cast<const char*>(p.right.Block(piece.col / kBlockSide + j + 1, first)),
          more ? kBlockLines / row_blocks : 0};
      for (size_t i = 0; i < row_blocks; ++i) {
        float* const sums = chunks == 1 ? all : all + (j * row_blocks + i) * kBlockSums;
        if (chunk == 0) {
          tiles.Zero();
        } else {
          tiles.Load(sums);
        }
        const LeftBlock block = left.At(i);
        const size_t full = std::min(end, block.blocks);
        tiles.Add(block, first, full - first, right, ahead);
        ahead.data += (full - first) * ahead.lines * kLineBytes;
        if (full < end) {
          tiles.Add(InTiles(block.tail, 1), 0, 1, right + (full - first) * kBlockNumbers, Ahead());
        }
        tiles.Store(sums);
        if (chunk + 1 < chunks) continue;
        Tiles::Finish(p, piece.row + i * kBlockSide, piece.col + j * kBlockSide, sums);
      }
    }
  }
  tiles.End();
}

// Asks Linux for the tile registers, which a process gets on request.
bool SystemGivesTiles() {
  constexpr long kAskForState = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kAskForState, kTileData) == 0;
}

}  // namespace

TileGemm PlainTileGemm() { return MultiplyPiece<PlainTiles>; }

TileGemm AmxTileGemm() {
  static const bool given = SystemGivesTiles();
  return given ? MultiplyPiece<AmxTiles> : nullptr;
}

}  // namespace hdps
